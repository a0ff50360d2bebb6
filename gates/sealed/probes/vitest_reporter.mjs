// vitest's reporter for the gate, beside those of the user.
//
// Answers T2. It runs in vitest's main process; tests run in processes or threads of their own. vitest makes the
// reporters that the user wants; the first of its own that is told of a run brings in this one, so that no option and no
// setting is changed. Where all of them are the user's own, what puts the files into order brings it in.
import { createRequire } from 'node:module'
import path from 'node:path'
import { pathToFileURL } from 'node:url'

const { deciding, open } = createRequire(import.meta.url)('./node_channel.cjs')
const OUTCOMES = { pass: 'passed', fail: 'failed', skip: 'skipped', todo: 'skipped' }

export async function join (folder) {
  const load = name => import(pathToFileURL(path.join(folder, 'dist', name)).href)
  const node = await load('node.js')
  const { ReportersMap } = node.ReportersMap ? node : await load('reporters.js')
  for (const { prototype } of Object.values(ReportersMap)) {
    before(prototype, 'onInit', (reporter, vitest) => add(vitest))
  }
  before(node.BaseSequencer.prototype, 'sort', sequencer => add(sequencer.ctx))
}

function before (prototype, name, act) {
  const method = prototype[name]
  if (!method) return
  prototype[name] = function (...args) {
    act(this, ...args)
    return method.apply(this, args)
  }
}

function add (vitest) {
  if (!vitest.reporters.some(each => each instanceof Reporter)) vitest.reporters.push(new Reporter(vitest))
}

class Reporter {
  #opening = open('vitest')

  constructor (vitest) {
    this.vitest = vitest
  }

  // Everything is told at the end: in which order files end differs from run to run, and the numbers in ids may not.
  // Of the two names vitest has one or both, according to its version.
  onFinished (files, errors) { return this.finish(errors) }
  onTestRunEnd (modules, errors) { return this.finish(errors) }

  finish (errors = []) {
    this.done ??= this.tell(errors)
    return this.done
  }

  async tell (errors) {
    const gate = await this.#opening
    if (!gate) return
    const { config, state } = this.vitest
    const files = state.getFiles()
    files.forEach(each => gate.tests.add(each.filepath))
    const key = each => `${each.filepath}\0${each.projectName ?? ''}`
    for (const file of [...files].sort((one, two) => (key(one) < key(two) ? -1 : 1))) report(gate, file)
    const unhandled = config.dangerouslyIgnoreUnhandledErrors ? [] : errors
    for (const error of unhandled) {
      if (error.VITEST_TEST_PATH) gate.broken(error.VITEST_TEST_PATH, error.stack ?? error.message)
    }
    const projects = [this.vitest, ...this.vitest.projects ?? []]
    const servers = [...new Set(projects.map(each => each.vite ?? each.server))].filter(Boolean)
    await gate.finish({
      status: unhandled.length > 0 || files.some(each => each.result?.state === 'fail'),
      loaded: servers.flatMap(loaded),
      frozen: [...projects.flatMap(each => deciding(each.config)), ...servers.map(each => each.config.configFile)]
    })
  }
}

// `cause` is the error of a hook, for which tests did not begin.
function report (gate, task, names = [], cause = undefined) {
  const file = task.file.filepath
  const { state, errors, duration, pending } = task.result ?? {}
  if (task.tasks) {
    const error = said(errors)
    if (error) gate.broken(file, error)
    for (const each of task.tasks) report(gate, each, [...names, each.name], error ?? cause)
    return
  }
  const isCalled = pending ?? task.pending ?? false
  // A test whose process ended before it did has no outcome.
  let outcome = OUTCOMES[state] ?? OUTCOMES[task.mode] ?? 'failed'
  if (outcome === 'skipped' && cause && !isCalled) outcome = 'failed'
  const isBad = outcome === 'failed'
  const why = isBad ? said(errors) ?? cause ?? 'it did not end' : ''
  const ran = isBad && cause ? '' : undefined
  gate.test({ file, names, outcome, milliseconds: duration, said: why, ran, when: isCalled ? 'call' : '' })
}

function said (errors) {
  const error = errors?.[0]
  return error && (error.stack || `${error.name ?? 'Error'}: ${error.message}`)
}

// Files that vite made ready for a test, in each of its environments.
function loaded (server) {
  const owners = server.environments ? Object.values(server.environments) : [server]
  return owners.flatMap(each => [...each.moduleGraph?.fileToModulesMap.keys() ?? []])
}
