// The reporter of `node --test`: it tells the gate what it is told, in a process without tests, and prints nothing.
//
// Answers T2. Test files run in processes of their own and cannot reach the connection. Their results come through what
// these print, so how each of them ended is looked up in the record that the observer there left as it exited: a file
// that the product ended, or whose exit status it made another one, is no file that passed.
import { createRequire } from 'node:module'
import { EventEmitter } from 'node:events'
import fs from 'node:fs'
import path from 'node:path'

const channel = createRequire(import.meta.url)('./node_channel.cjs')
const { loadedFiles, plainPath } = channel
// Where tests run in this process, newer Nodes load what `--require` names only after the reporters.
const { folder } = channel.told ?? JSON.parse(process.env.INTERLOCK_NODE)
const opening = channel.open('node')
// With one reporter more than the user's, Node may warn of the number of listeners.
EventEmitter.defaultMaxListeners += 10
const names = []
const printed = new Map()
const refused = new Map()
const [entries, told, failing] = [new Set(), new Set(), new Set()]
const known = new Map()
let failed = false

const isSet = value => value !== undefined && value !== false
const isFile = data => data.nesting === 0 && path.resolve(plainPath(data.name)) === data.file

function records () {
  for (const name of fs.readdirSync(folder)) {
    if (known.has(name) || !name.endsWith('.json')) continue
    try { known.set(name, JSON.parse(fs.readFileSync(path.join(folder, name), 'utf8'))) } catch {}
  }
  return [...known.values()]
}

// What is wrong with how the process of a file ended, whatever its exit status is at last.
function trouble (gate, file, record) {
  const { code, exit } = record ?? {}
  if (!record) return 'its process left no trace of its end'
  if (exit !== null && !exit.startsWith(`${file}:`) && !exit.includes('/node_modules/')) {
    return `${exit && gate.relative(exit)} process.exit: it ended the test file`.trim()
  }
  return code ? `${gate.relative(file)} ended with exit status ${code}` : ''
}

// A file without a test of `node:test`: a script, which is a test by itself, or one that did not come to its tests.
function fileEnded (gate, data) {
  const { file, kind } = data
  const record = records().find(each => each.main === file)
  const error = record?.error
  const said = error?.stack ?? printed.get(file) ?? data.details?.error?.message
  if (record?.isRunner && kind !== 'fail') return
  told.add(file)
  if (kind === 'fail' && (!record || record.isRunner || (error && error.code !== 'ERR_ASSERTION'))) {
    return gate.broken(file, said)
  }
  const why = kind === 'fail' ? `${gate.relative(file)} ${refused.get(file) ?? 'it did not end with exit status 0'}` : ''
  const bad = error ? said : trouble(gate, file, record) || why
  gate.test({ file, names: [], outcome: bad ? 'failed' : 'passed', milliseconds: data.details?.duration_ms, said: bad })
}

function testEnded (gate, data) {
  const { details, kind } = data
  const file = plainPath(data.entryFile ?? data.file)
  gate.tests.add(file).add(data.file)
  let outcome = kind === 'pass' ? 'passed' : 'failed'
  if (isSet(data.skip)) outcome = 'skipped'
  else if (isSet(data.todo)) outcome = kind === 'pass' ? 'xpassed' : 'xfailed'
  if (outcome === 'failed') failing.add(file)
  const cause = details?.error?.cause ?? details?.error
  const said = cause?.stack ?? cause?.message ?? cause
  if (details?.type === 'suite') {
    // It is no test. Where a hook of it failed, or what defines its tests, not all of them are known.
    if (outcome === 'failed' && details.error?.failureType !== 'subtestsFailed') gate.broken(file, said)
    return
  }
  const why = kind === 'fail' ? said : typeof data.skip === 'string' ? data.skip : ''
  const at = [...names.slice(0, data.nesting), data.name]
  gate.test({ file, names: at, outcome, milliseconds: details?.duration_ms, said: why })
}

export default async function * (source) {
  EventEmitter.defaultMaxListeners -= 10
  const gate = await opening
  for await (const { type, data: given } of source) {
    if (!gate || !given) continue
    const data = { ...given, file: path.resolve(plainPath(given.file ?? '')), kind: type.slice(5) }
    if (type === 'test:enqueue' && isFile(data)) entries.add(data.file)
    if (type === 'test:start') names.splice(data.nesting, Infinity, data.name)
    if (type === 'test:stderr') printed.set(data.file, ((printed.get(data.file) ?? '') + data.message).slice(-4000))
    if (type === 'test:stdout' && /^not ok /.test(data.message)) refused.set(data.file, data.message.trim())
    if (type !== 'test:pass' && type !== 'test:fail') continue
    failed ||= type === 'test:fail' && !isSet(data.todo)
    if (isFile(data)) fileEnded(gate, data)
    else testEnded(gate, data)
  }
  if (!gate) return
  const all = records()
  for (const file of entries) {
    const message = told.has(file) || failing.has(file) ? '' : trouble(gate, file, all.find(each => each.main === file))
    if (message) gate.emit({ e: 'broken', file: gate.relative(file), message })
    gate.tests.add(file)
  }
  const loaded = [...all.flatMap(each => each.loaded), ...(process.env.INTERLOCK_NODE ? [] : loadedFiles())]
  const changed = all.flatMap(each => each.changed)
  await gate.finish({ status: failed, loaded, frozen: [], changed })
}
