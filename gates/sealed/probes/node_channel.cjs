'use strict'
/* node:coverage disable */
// What the observers of Node's test runners share: the connection to the gate, which files are loaded, words for people.
//
// Answers T2. The process of a reporter connects before the first test runs, and the reporter alone has what sends
// events: a line that another writes, even through the same socket, has no token, and another connection of the process
// is ignored.
const { existsSync, realpathSync } = require('node:fs')
const Module = require('node:module')
const net = require('node:net')
const path = require('node:path')
const { fileURLToPath } = require('node:url')

const SOCKET = path.join(__dirname, '..', 'socket')
const FRAME = /^(?:\s+at .*?\(?)?((?:file:\/\/)?\/[^()]*?):(\d+)(?::(\d+)\)?)?$/
// eslint-disable-next-line no-control-regex
const COLOUR = /\u001b\[[\d;]*m/g
const HEAD = /^\S*(?:Error|Exception)\b/
const RAN = { passed: 'ended', xpassed: 'ended', failed: 'begun', xfailed: 'begun' }
const DECIDING = [
  'setupFiles', 'setupFilesAfterEnv', 'globalSetup', 'globalTeardown', 'snapshotSerializers', 'environment',
  'testEnvironment', 'runner', 'testRunner', 'resolver', 'reporters', 'diff', 'transform', 'testSequencer'
]

// Connect; the promise is of what sends events, or of null where nobody listens or we are ignored.
exports.open = runner => new Promise(resolve => {
  const socket = net.connect(SOCKET)
  let text = ''
  socket.setEncoding('utf8')
  socket.on('error', () => resolve(null))
  socket.on('close', () => resolve(null))
  socket.on('data', part => {
    text += part
    if (!text.endsWith('\n')) return
    const answer = JSON.parse(text)
    // While tests run the connection keeps no process alive.
    socket.unref()
    if (answer.ignored) socket.destroy()
    else resolve(sender(socket, answer))
  })
  socket.write(JSON.stringify({ e: 'hello', runner }) + '\n')
})

function sender (socket, { token, root }) {
  const used = new Map()
  const tests = new Set()
  const line = event => `${token} ${JSON.stringify(event)}\n`
  const emit = event => { socket.write(line(event)) }
  const relative = file => path.relative(root, path.resolve(root, file ?? ''))
  const isInside = file => file.startsWith(root + path.sep)

  // `calc.js:2:7 TypeError: add is not a function`: the deepest frame in the project that is no test, else the deepest.
  const message = stack => {
    const lines = String(stack ?? '').replace(COLOUR, '').split('\n')
    const frames = lines.map(each => FRAME.exec(each)).filter(Boolean)
      .map(([, file, line, column]) => [plainPath(file), column ? `${line}:${column}` : line])
    const inside = frames.filter(([file]) => isInside(file) && isOwn(file))
    const place = inside.find(([file]) => !tests.has(file)) ?? inside[0]
    const said = lines.filter(each => each.trim() && !FRAME.test(each) && !/^\s+at /.test(each))
    const from = Math.max(said.findIndex(each => HEAD.test(each)), 0)
    const words = said.slice(from, from + 3).map(each => each.trim()).join(' ').slice(0, 500)
    return place ? `${relative(place[0])}:${place[1]} ${words}` : words
  }

  emit({ e: 'begin' })
  return {
    tests, // files that are no product

    broken (file, said) { emit({ e: 'broken', file: relative(file), message: message(said) }) },

    // What a test came to; to an id that was there before a number is added.
    test ({ file, names, outcome, milliseconds, said, ran = RAN[outcome] ?? '', when = '' }) {
      const plain = [relative(file), ...names].join(' > ')
      const number = (used.get(plain) ?? 0) + 1
      used.set(plain, number)
      const id = number === 1 ? plain : `${plain} (${number})`
      const seconds = (milliseconds ?? 0) / 1000
      emit({ e: 'case', id, outcome, seconds, message: message(said), file: relative(file), ran, when })
    },

    // The last event; the promise is kept when all is written.
    finish ({ status, loaded, frozen }) {
      const files = names => [...new Set(names)]
        .filter(each => typeof each === 'string' && path.isAbsolute(each) && isOwn(each) && existsSync(each))
      const event = {
        e: 'session',
        status: Number(status),
        loaded: files(files(loaded).map(each => realpathSync(each))).filter(isInside).map(each => [relative(each), each]),
        frozen: files([...frozen, ...tests, path.join(root, 'package.json'), path.resolve('package.json')]).filter(isInside),
        early: [],
        roots: [],
        changed: [],
        equals: []
      }
      return new Promise(resolve => {
        socket.ref()
        socket.once('close', resolve)
        socket.end(line(event), resolve)
      })
    }
  }
}

const isOwn = file => !file.includes('/node_modules/')

function plainPath (url) {
  try { return url.startsWith('file:') ? fileURLToPath(url) : url } catch { return url }
}
exports.plainPath = plainPath

// Paths of the project's files that this process has loaded. V8 itself lists the scripts, those of ES modules included,
// so that nothing has to be changed before they are loaded; `require.cache` adds JSON and native modules.
exports.loadedFiles = () => {
  const paths = new Set(Object.keys(Module._cache))
  try {
    const { Session } = require('node:inspector')
    const session = new Session()
    session.connect()
    session.on('Debugger.scriptParsed', ({ params: { url } }) => paths.add(plainPath(url)))
    // It stays connected: with the end of a session V8 forgets what Node counts for its coverage.
    session.post('Debugger.enable')
  } catch {}
  return [...paths].filter(each => path.isAbsolute(each) && isOwn(each) && path.dirname(each) !== __dirname)
}

// The paths that the settings of a runner name where they say what decides a run.
exports.deciding = settings => DECIDING.flatMap(name => [settings[name]].flat(3))
  .filter(each => typeof each === 'string' && /^\.{0,2}\//.test(each))
  .map(each => path.resolve(settings.root ?? settings.rootDir, each))
