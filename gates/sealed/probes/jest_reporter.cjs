'use strict'
// jest's reporter for the gate, beside those of the user.
//
// Answers T2. It runs in jest's main process; with `--runInBand`, or where jest chooses so, the tests run there too, in
// contexts of their own. Who ends this process, as `process.exit` in the product does, leaves the session unfinished.
const fs = require('node:fs')
const Module = require('node:module')
const path = require('node:path')
const { deciding, open } = require('./node_channel.cjs')

const OUTCOMES = { passed: 'passed', failed: 'failed' }
let core = null
let settings = {}
let opening = null // What sends events, which nothing outside of this file can have.

class Reporter {
  async onRunStart () { await opening }

  // Everything is told at the end: in which order files end differs from run to run, and the numbers in ids may not.
  async onRunComplete (contexts, results) {
    const gate = await opening
    if (!gate) return
    const { testResults, numFailedTests, numRuntimeErrorTestSuites, snapshot } = results
    testResults.forEach(each => gate.tests.add(each.testFilePath))
    const key = each => `${each.testFilePath}\0${each.displayName?.name ?? ''}`
    for (const suite of [...testResults].sort((one, two) => (key(one) < key(two) ? -1 : 1))) report(gate, suite)
    const configs = [...contexts].map(each => each.config)
    const named = [settings.global, ...configs].flatMap(deciding)
    await gate.finish({
      status: numFailedTests || numRuntimeErrorTestSuites || snapshot.failure ? settings.global.testFailureExitCode : 0,
      loaded: [...contexts].flatMap(each => dependencies(each, gate.tests)),
      frozen: [...named, ...configs.flatMap(configFiles), ...[...contexts].flatMap(mocks), settings.file]
    })
  }
}

function report (gate, { testExecError, failureMessage, numFailingTests, testFilePath: file, testResults }) {
  if (testExecError || (failureMessage && !numFailingTests)) gate.broken(file, testExecError?.stack ?? failureMessage)
  for (const { status, ancestorTitles, title, duration, failureMessages } of testResults) {
    const outcome = OUTCOMES[status] ?? 'skipped'
    gate.test({ file, names: [...ancestorTitles, title], outcome, milliseconds: duration, said: failureMessages[0] })
  }
}

// What the tests can have loaded, by the requires and imports that jest found in each file.
function dependencies ({ config, hasteFS, resolver }, files) {
  const found = new Set([...files, ...deciding(config)])
  try {
    const { DependencyResolver } = core('jest-resolve-dependencies')
    const requires = new DependencyResolver(resolver, hasteFS)
    for (const file of found) requires.resolve(file).forEach(each => found.add(each))
  } catch {}
  return [...found]
}

// The files in folders `__mocks__`, which jest puts in the place of what tests load.
function mocks ({ config, moduleMap }) {
  try {
    return [...moduleMap.getRawModuleMap().mocks.values()].map(each => path.resolve(config.rootDir, String(each)))
  } catch { return [] }
}

function configFiles ({ rootDir }) {
  const { JEST_CONFIG_BASE_NAME: name, JEST_CONFIG_EXT_ORDER: endings } = core('jest-config').constants
  return endings.map(ending => path.join(rootDir, name + ending)).filter(each => fs.existsSync(each))
}

// jest's own function that reads its settings gives this reporter as one of those that the user wants.
function join () {
  const load = Module._load
  Module._load = function (request, parent) {
    const found = Reflect.apply(load, this, arguments)
    if (request === 'jest-config' && found.readConfigs) {
      Module._load = load
      core = Module.createRequire(Module.createRequire(parent.filename).resolve('@jest/core'))
      const { readConfigs } = found
      found.readConfigs = async function (argv) {
        const read = await Reflect.apply(readConfigs, this, arguments)
        const reporters = [...(read.globalConfig.reporters ?? [['default', {}]]), [__filename, {}]]
        settings = { global: read.globalConfig, file: argv.config && path.resolve(argv.config) }
        opening = open('jest')
        return { ...read, globalConfig: Object.freeze({ ...read.globalConfig, reporters }) }
      }
    }
    return found
  }
}

module.exports = Object.assign(Reporter, { join })
