'use strict'
// Loaded before anything else: in the process of `node --test`, which runs no test, it keeps the secrets for the
// reporter; in the process of each test file it adds canaries behind the tests of that file.
const fs = require('node:fs')
const Module = require('node:module')

const NAME = 'INTERLOCK_CANARIES'

if (process.env.NODE_TEST_CONTEXT === undefined) {
  const spec = JSON.parse(fs.readFileSync(Number(process.env.INTERLOCK_SPEC_FD), 'utf8'))
  fs.closeSync(Number(process.env.INTERLOCK_SPEC_FD))
  const stream = Number(process.env.INTERLOCK_STREAM_FD)
  delete process.env.INTERLOCK_SPEC_FD
  delete process.env.INTERLOCK_STREAM_FD
  if (spec.canaries.length) process.env[NAME] = JSON.stringify(spec.canaries)
  let given = { spec, stream }
  exports.take = () => { const once = given; given = null; return once }
} else if (process.env[NAME]) {
  const rows = JSON.parse(process.env[NAME])
  delete process.env[NAME]
  const main = process.argv[1]
  if (/\.[cm]?js$/.test(main)) addBehind(main, rows)
}

function text (rows) {
  const value = () => 3 + Math.floor(Math.random() * 80)
  const bodies = {
    compare: `a.strictEqual(${value()}, ${100 + value()})`,
    deep: `a.deepStrictEqual([${value()}], [${100 + value()}])`,
    error: `throw new TypeError('${value()}')`,
    rejects: 'await a.rejects(async () => {})',
    truth: 'a.ok(0)',
    pass: `a.deepStrictEqual([${value()}].length, 1)`
  }
  return rows.map(({ token, kind }) => `t(${JSON.stringify(token)}, async () => { ${bodies[kind]} });`).join('')
}

function addBehind (main, rows) {
  const { pathToFileURL } = require('node:url')
  const code = text(rows)
  const cjs = `\n;{const t=require('node:test'),a=require('node:assert');${code}}`
  const esm = `\n;{const t=(await import('node:test')).default,a=(await import('node:assert')).default;${code}}`
  const compile = Module.prototype._compile
  Module.prototype._compile = function (content, filename, ...rest) {
    if (filename !== main) return compile.call(this, content, filename, ...rest)
    Module.prototype._compile = compile
    return compile.call(this, rest[0] === 'module' ? content : content + cjs, filename, ...rest)
  }
  const url = pathToFileURL(main).href
  if (Module.registerHooks) {
    Module.registerHooks({
      load (at, context, next) {
        const result = next(at, context)
        if (at === url && result.format === 'module') result.source = String(result.source) + esm
        return result
      }
    })
  } else if (main.endsWith('.mjs') || !main.endsWith('.cjs')) {
    const hook = `export async function load (at, context, next) {
      const result = await next(at, context)
      if (at === ${JSON.stringify(url)} && result.format === 'module') result.source = String(result.source) + ${JSON.stringify(esm)}
      return result
    }`
    Module.register('data:text/javascript,' + encodeURIComponent(hook))
  }
}
