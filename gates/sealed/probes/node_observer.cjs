'use strict'
/* node:coverage disable */
// Brings the observer into Node's test runners; `NODE_OPTIONS=--require …/node_observer.cjs` loads it everywhere. Where a
// script sets that variable anew, the programs of vitest and jest still load it, by a line that is mounted into them.
//
// Answers T2. What it does depends on what the process is for:
//
// * `node --test`, which runs no test but starts a process for each file. Which reporters there are is read from the
//   command line by native code before any script runs, and cannot be changed from within. So the same command is run
//   once more with ours beside those of the user, and this process ends as that one does. Options that Node documents
//   since 18 are all that this needs; nothing of Node is patched.
// * The process of a test file is as without us: no variable, no option. As it exits it leaves a record: what it had
//   loaded, and whether it came to its own end.
// * vitest and jest: their own functions that choose the reporters choose ours, too. Nothing is added to the command or
//   the settings, so neither tests nor the user see a difference. Their workers are not observed.
// * All others (npm, npx, scripts) are left alone.
const { spawnSync } = require('node:child_process')
const { mkdtempSync, rmSync, writeFileSync } = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { pathToFileURL } = require('node:url')
const { isMainThread } = require('node:worker_threads')

const NAME = 'INTERLOCK_NODE'
const OPTION = /(?:^|\s+)(?:-r|--require)[ =](?:"[^"]*node_observer\.cjs"|\S*node_observer\.cjs)(?=\s|$)/g
const REPORTER = `--test-reporter=${path.join(__dirname, 'node_test_reporter.mjs')}`
const told = isMainThread && process.env[NAME] ? JSON.parse(process.env[NAME]) : null

if (!isMainThread) {
  // As without us.
} else if (process.env.NODE_TEST_CONTEXT !== undefined) {
  hide()
  if (told) leaveRecord(told.folder)
} else if (process.execArgv.includes(REPORTER)) {
  process.execArgv.splice(-told.added)
  // Tests that run in this very process see it as without us.
  if (/--(?:experimental-)?test-isolation[ =]none/.test(options().join(' '))) hide()
} else if (options().includes('--test') && !options().some(each => each.startsWith('--watch'))) {
  runAgain()
} else if (process.argv[1]) {
  const main = mainScript()
  if (/\/jest(?:-cli)?\/bin\/jest\.js$/.test(main)) {
    hide()
    require('./jest_reporter.cjs').join()
  } else if (/\/vitest\/vitest\.mjs$/.test(main)) {
    hide()
    import(pathToFileURL(path.join(__dirname, 'vitest_reporter.mjs')).href)
      .then(({ join }) => join(path.dirname(main)))
      .catch(() => {})
  }
}

// The options of this process: those of the variable count first.
function options () {
  return [...(process.env.NODE_OPTIONS ?? '').split(/\s+/), ...process.execArgv]
}

function mainScript () {
  try { return require.resolve(process.argv[1]) } catch { return '' }
}

// Make the variable and the options what they are without us; newer Nodes hand on as options what the variable says.
function hide () {
  const rest = (process.env.NODE_OPTIONS ?? '').replace(OPTION, '').trim()
  if (rest) process.env.NODE_OPTIONS = rest
  else delete process.env.NODE_OPTIONS
  delete process.env[NAME]
  process.execArgv = process.execArgv.filter(each => !/^(?:-r|--require)=.*node_observer\.cjs$/.test(each))
}

function runAgain () {
  const count = name => options().filter(each => each === name || each.startsWith(`${name}=`)).length
  const [reporters, destinations] = [count('--test-reporter'), count('--test-reporter-destination')]
  const added = []
  if (!reporters && !destinations) {
    const isNew = Number(process.versions.node.split('.')[0]) >= 23
    added.push(`--test-reporter=${isNew || require('node:tty').isatty(1) ? 'spec' : 'tap'}`)
  }
  if (reporters <= 1 && !destinations) added.push('--test-reporter-destination=stdout')
  let folder
  try { folder = mkdtempSync(path.join(os.tmpdir(), 'interlock-')) } catch { return }
  added.push(REPORTER, `--test-reporter-destination=${path.join(folder, 'nothing')}`)
  const files = process.argv.slice(1)
  const end = files[0]?.startsWith('-') ? ['--'] : []
  const done = spawnSync(process.execPath, [...process.execArgv, ...added, ...end, ...files], {
    argv0: process.argv0,
    env: { ...process.env, [NAME]: JSON.stringify({ folder, added: added.length }) },
    stdio: 'inherit'
  })
  rmSync(folder, { recursive: true, force: true })
  if (done.error) return
  if (done.signal) process.kill(process.pid, done.signal)
  process.exit(done.status ?? 1)
}

// An exit cannot be put off, so the record goes into a file. The functions are held: tests put others in their place.
function leaveRecord (folder) {
  const { loadedFiles } = require('./node_channel.cjs')
  let [error, ended] = [null, false]
  process.on('uncaughtExceptionMonitor', thrown => { error ??= thrown ?? new Error('uncaught') })
  // It is not told of where somebody ends the process.
  process.on('beforeExit', () => { ended = true })
  process.on('exit', code => {
    const record = {
      main: process.argv[1],
      ended: ended && code === 0,
      error: error && { code: String(error.code), stack: String(error.stack ?? error) },
      loaded: loadedFiles()
    }
    try { writeFileSync(path.join(folder, `${process.pid}.json`), JSON.stringify(record)) } catch {}
  })
}
