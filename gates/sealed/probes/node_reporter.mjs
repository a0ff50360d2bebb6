// The reporter of `node --test`: it seals what is reported to it, in a process that loads no test, and shows the rest of it to
// the user without the canaries.
import { createHmac } from 'node:crypto'
import { createRequire } from 'node:module'
import { compose } from 'node:stream'
import { spec as Spec } from 'node:test/reporters'
import fs from 'node:fs'
import path from 'node:path'

const { spec, stream } = createRequire(import.meta.url)('./node_probe.cjs').take()
const tokens = new Map(spec.canaries.map(({ token }) => [token, []]))
const counts = { tests: 0, pass: 0, fail: 0 }
const lost = /^(tests|pass|fail) (\d+)$/
let last = Buffer.from('')
let failed = false

function emit (event) {
  const body = Buffer.from(JSON.stringify(event))
  last = Buffer.from(createHmac('sha256', Buffer.from(spec.key, 'hex')).update(Buffer.concat([last, body])).digest('hex'))
  let data = Buffer.concat([body, Buffer.from(' '), last, Buffer.from('\n')])
  while (data.length) {
    try {
      data = data.subarray(fs.writeSync(stream, data))
    } catch (error) {
      if (error.code !== 'EAGAIN') return
    }
  }
}

const relative = file => path.relative(spec.root, path.resolve(spec.root, file ?? ''))
const above = new Map()
const used = new Map()

function identity ({ name, nesting, file }) {
  const names = above.get(file) ?? []
  const plain = [relative(file), ...names.slice(0, nesting), name].join(' > ')
  const number = (used.get(plain) ?? 0) + 1
  used.set(plain, number)
  return number === 1 ? plain : `${plain} (${number})`
}

function started ({ name, nesting, file }) {
  const names = above.get(file) ?? []
  names.length = nesting
  names[nesting] = name
  above.set(file, names)
}

function message (error) {
  const cause = error?.cause ?? error
  return String(cause?.stack ?? cause?.message ?? cause ?? '').slice(0, 2000)
}

function ended (kind, data) {
  const file = relative(data.file)
  if (data.nesting === 0 && path.resolve(spec.root, data.name) === path.resolve(spec.root, data.file ?? '')) {
    const text = kind === 'fail' ? output.get(data.file) ?? message(data.details?.error) : ''
    if (kind === 'fail') emit({ e: 'broken', file, message: text.slice(-2000) })
    return
  }
  let outcome = kind === 'pass' ? 'passed' : 'failed'
  if (data.skip !== undefined && data.skip !== false) outcome = 'skipped'
  else if (data.todo !== undefined && data.todo !== false) outcome = kind === 'pass' ? 'xpassed' : 'xfailed'
  if (data.details?.type === 'suite') {
    if (outcome === 'passed' || data.details?.error?.failureType === 'subtestsFailed') return
  }
  const text = kind === 'fail' ? message(data.details?.error) : typeof data.skip === 'string' ? data.skip : ''
  const seconds = (data.details?.duration_ms ?? 0) / 1000
  emit({ e: 'case', id: identity(data), outcome, message: text, seconds, file, differs: '', proof: '', accepts: '' })
}

const output = new Map()

async function * watched (source) {
  emit({ e: 'begin', runner: 'node', version: process.version })
  for await (const event of source) {
    const { type, data } = event
    if (tokens.has(data?.name) && data.nesting === 0) {
      if (type === 'test:pass' || type === 'test:fail') {
        const kind = type.slice(5)
        counts.tests++
        counts[kind]++
        emit({ e: 'canary', token: data.name, outcome: kind, file: relative(data.file) })
      }
      continue
    }
    if (type === 'test:start') started(data)
    if (type === 'test:stderr') output.set(data.file, ((output.get(data.file) ?? '') + data.message).slice(-4000))
    if (type === 'test:pass' || type === 'test:fail') {
      ended(type.slice(5), data)
      if (type === 'test:fail' && !(data.todo !== undefined && data.todo !== false)) failed = true
    }
    const count = type === 'test:diagnostic' ? lost.exec(data.message) : null
    if (count) data.message = `${count[1]} ${count[2] - counts[count[1]]}`
    yield event
  }
  emit({ e: 'session', status: Number(failed), loaded: [] })
}

process.on('exit', code => {
  if (tokens.size && code === 1 && !failed && counts.fail) process.exitCode = 0
  emit({ e: 'finish', status: process.exitCode ?? code })
})

export default async function * (source) {
  if (spec.quiet) {
    // eslint-disable-next-line no-unused-vars
    for await (const event of watched(source));
  } else {
    yield * compose(watched(source), new Spec())
  }
}
