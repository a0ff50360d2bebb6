// The reporter of `node --test`: it tells the gate what it is told, in a process without tests, and prints nothing.
//
// Answers T2. Test files run in processes of their own and cannot reach the connection. Their results come through what
// these print. A file without a test of `node:test` is a test by itself; that it came to its own end is proven by the
// record that the observer there left as it exited.
import { createRequire } from 'node:module'
import { EventEmitter } from 'node:events'
import fs from 'node:fs'
import path from 'node:path'

const { loadedFiles, open, plainPath } = createRequire(import.meta.url)('./node_channel.cjs')
const { folder } = JSON.parse(process.env.INTERLOCK_NODE)
const opening = open('node')
// With one reporter more than the user's, Node may warn of the number of listeners.
EventEmitter.defaultMaxListeners += 10
const names = []
const entries = new Set()
let failed = false

const isSet = value => value !== undefined && value !== false
const isFile = data => data.nesting === 0 && path.resolve(plainPath(data.name)) === data.file

function records () {
  const paths = fs.readdirSync(folder).filter(name => name.endsWith('.json')).map(name => path.join(folder, name))
  return paths.map(each => JSON.parse(fs.readFileSync(each, 'utf8')))
}

// A file as a whole: a script, which is a test by itself, or one that did not come to its tests.
function fileEnded (gate, { file, kind, details }) {
  const record = records().find(each => each.main === file)
  const error = record?.error
  const said = error?.stack ?? details?.error?.message
  if (kind === 'fail' && (!record || gate.tests.has(file) || (error && error.code !== 'ERR_ASSERTION'))) {
    return gate.broken(file, said)
  }
  const outcome = kind === 'fail' || error ? 'failed' : 'passed'
  const ran = record?.ended ? 'ended' : 'begun'
  gate.test({ file, names: [], outcome, milliseconds: details?.duration_ms, said: outcome === 'failed' ? said : '', ran })
}

function testEnded (gate, data) {
  const { details, kind } = data
  const file = plainPath(data.entryFile ?? data.file)
  gate.tests.add(file).add(data.file)
  let outcome = kind === 'pass' ? 'passed' : 'failed'
  if (isSet(data.skip)) outcome = 'skipped'
  else if (isSet(data.todo)) outcome = kind === 'pass' ? 'xpassed' : 'xfailed'
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
    if (type !== 'test:pass' && type !== 'test:fail') continue
    failed ||= type === 'test:fail' && !isSet(data.todo)
    if (isFile(data)) fileEnded(gate, data)
    else testEnded(gate, data)
  }
  if (!gate) return
  for (const file of entries) gate.tests.add(file)
  const loaded = [...records().flatMap(each => each.loaded), ...loadedFiles()]
  await gate.finish({ status: failed, loaded, frozen: [] })
}
