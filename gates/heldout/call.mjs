// Makes one call of a checked function: a line of JSON comes in, a line of JSON goes out behind the word that came in.
//
// The function is an export, or a property of the default export (`module.exports` of CommonJS). In JSON, undefined is
// null, a BigInt a number, what can be iterated an array, a Map an object, what has toJSON() that, and a promise what it
// comes to; NaN and the infinities are written as by Python. A function or symbol is no JSON, and neither is more than a
// million items: then there is no answer, and the exit status is not 0.

import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const MAX_ITEMS = 1_000_000;
const MAX_DEPTH = 200;
const NO_JSON = new Error("no JSON");
let items = 0;

function plain(value, depth) {
  items += 1;
  if (items > MAX_ITEMS || depth > MAX_DEPTH) throw NO_JSON;
  if (value === null || value === undefined) return "null";
  if (["boolean", "bigint", "number"].includes(typeof value)) return String(value);
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value !== "object") throw NO_JSON;
  if (value instanceof Map) return plain(Object.fromEntries(value), depth);
  const parts = [];
  if (typeof value[Symbol.iterator] === "function") {
    for (const item of value) parts.push(plain(item, depth + 1));
    return `[${parts.join(",")}]`;
  }
  if (typeof value.toJSON === "function") return plain(value.toJSON(), depth + 1);
  for (const [key, item] of Object.entries(value)) {
    if (item !== undefined) parts.push(`${JSON.stringify(key)}:${plain(item, depth + 1)}`);
  }
  return `{${parts.join(",")}}`;
}

// Read before process.stdout is touched, and not through process.stdin: either could make reads of the pipe fail.
const [word, place, args] = JSON.parse(readFileSync(0, "utf8"));
const { exit, stdout } = process;
const write = stdout.write.bind(stdout);
const [program, path] = place.split(":");
const module = await import(pathToFileURL(resolve(program)).href);
const names = path.split(".");
let owner;
let found = names[0] in module ? module : module.default;
for (const name of names) [owner, found] = [found, found[name]];
const called = found.bind(owner);
let answer;
try {
  answer = `{"value":${plain(await called(...args), 0)}}`;
} catch (error) {
  if (error === NO_JSON) throw error;
  answer = `{"raised":${JSON.stringify(String(error?.constructor?.name ?? typeof error))}}`;
}
write(`\n${word}${answer}\n`, () => exit(0));
