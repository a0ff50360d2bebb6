'use strict'
// Loaded before anything else in each process of node: SIGUSR1 would open the debugger, by which a process of the tested
// code could change the one that runs the tests. With a listener it does not.
if (require('node:worker_threads').isMainThread) process.on('SIGUSR1', () => {})
