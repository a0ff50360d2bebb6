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
//   loaded, and how it came to its end. `node --test` counts a file that exits with 0 as a test that passed, even if
//   the product called `process.exit(0)` at once.
// * vitest and jest: their own functions that choose the reporters choose ours, too. Nothing is added to the command or
//   the settings, so neither tests nor the user see a difference. Their workers are not observed.
// * All others (npm, npx, scripts) are left alone.
const assert = require('node:assert')
const { spawnSync } = require('node:child_process')
const { mkdtempSync, rmSync, writeFileSync } = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { fileURLToPath, pathToFileURL } = require('node:url')
const { isMainThread, threadId, getEnvironmentData, setEnvironmentData } = require('node:worker_threads')

const NAME = 'INTERLOCK_NODE'
const OPTION = /(?:^|\s+)(?:-r|--require)[ =](?:"[^"]*node_observer\.cjs"|\S*node_observer\.cjs)(?=\s|$)/g
const REPORTER = `--test-reporter=${path.join(__dirname, 'node_test_reporter.mjs')}`
const told = isMainThread && process.env[NAME] ? JSON.parse(process.env[NAME]) : null

if (!isMainThread) {
  const folder = getEnvironmentData(NAME)
  if (folder) leaveRecord(folder)
} else if (process.env.NODE_TEST_CONTEXT !== undefined) {
  hide()
  if (told) leaveRecord(told.folder)
} else if (process.execArgv.includes(REPORTER)) {
  require('./node_channel.cjs').told = told
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
  setEnvironmentData(NAME, folder)
  const before = assertions()
  let error = null
  process.on('uncaughtExceptionMonitor', found => { error ??= found ?? new Error('uncaught') })
  process.on('exit', code => {
    const record = {
      main: isMainThread ? process.argv[1] : '',
      code,
      exit: caller(),
      error: error && { code: String(error.code), stack: String(error.stack ?? error) },
      isRunner: process.moduleLoadList.includes('NativeModule test'),
      loaded: loadedFiles(),
      changed: Object.entries(assertions()).filter(([name, each]) => each !== before[name]).map(([name]) => name)
    }
    try { writeFileSync(path.join(folder, `${process.pid}-${threadId}.json`), JSON.stringify(record)) } catch {}
  })
}

function assertions () {
  const named = [['assert', assert], ['assert.strict', assert.strict]]
  return Object.fromEntries(named.flatMap(([name, of]) => Object.keys(of).map(each => [`${name}.${each}`, of[each]])))
}

// Where `process.exit` was called, as the stack tells: null if it was not, and an empty string if by no file.
function caller () {
  const { prepareStackTrace, stackTraceLimit } = Error
  Object.assign(Error, { prepareStackTrace: (_, sites) => sites, stackTraceLimit: 200 })
  const sites = new Error().stack
  Object.assign(Error, { prepareStackTrace, stackTraceLimit })
  const isNode = site => site.isNative() || site.getFileName()?.startsWith('node:')
  const at = sites.findIndex(each => each.getFunctionName() === 'exit' && isNode(each))
  if (at < 0 || sites[at + 1]?.getFileName()?.startsWith('node:internal/test_runner/')) return null
  const site = sites.slice(at + 1).find(each => !isNode(each))
  const file = site && !site.isEval() ? site.getFileName() ?? '' : ''
  return file && `${file.startsWith('file:') ? fileURLToPath(file) : file}:${site.getLineNumber()}`
}
