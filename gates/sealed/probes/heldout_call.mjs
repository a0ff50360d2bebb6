// Makes one call of a checked function: a line of JSON comes in, a line of JSON goes out behind the word that came in.
//
// The result becomes JSON like this:
// * null, booleans, numbers and text as they are; undefined: null; a BigInt: a number. NaN and the infinities as Python's
//   json writes them.
// * An array, typed array, Set, generator or other iterator: an array, in its order.
// * A Map: an object, whose keys are made text. What has toJSON(), such as a Date: that.
// * Another object: its own enumerable properties, those that are undefined left out.
// * A promise: what it comes to. A function or symbol is no JSON, and the call has no result; so is more than a million items.
//
// The function is an export of that name, or a property of the default export (`module.exports` of CommonJS).

import { readFileSync, writeSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const MAX_ITEMS = 1_000_000;
const MAX_DEPTH = 200;
const { parse, stringify } = JSON;
// To import it from node:process opens process.stdin, whose pipe then waits for nobody.
const { exit } = process;

class NoJson extends Error {}

let items = 0;

function plain(value, depth = 0) {
  items += 1;
  if (items > MAX_ITEMS || depth > MAX_DEPTH) throw new NoJson();
  if (value === null || value === undefined) return "null";
  switch (typeof value) {
    case "boolean":
    case "bigint":
      return String(value);
    case "number":
      return Object.is(value, -0) ? "0" : String(value);
    case "string":
      return stringify(value);
    case "object":
      return object(value, depth);
    default:
      throw new NoJson();
  }
}

function object(value, depth) {
  if (value instanceof Number || value instanceof String || value instanceof Boolean) return plain(value.valueOf(), depth);
  if (value instanceof Map) return members([...value].map(([key, item]) => [String(key), item]), depth);
  if (typeof value[Symbol.iterator] === "function") {
    const parts = [];
    for (const item of value) parts.push(plain(item, depth + 1));
    return `[${parts.join(",")}]`;
  }
  if (typeof value.toJSON === "function") return plain(value.toJSON(), depth + 1);
  return members(Object.entries(value).filter(([, item]) => item !== undefined), depth);
}

function members(entries, depth) {
  return `{${entries.map(([key, item]) => `${stringify(key)}:${plain(item, depth + 1)}`).join(",")}}`;
}

async function load(call) {
  const names = call.function.split(".");
  const module = await import(pathToFileURL(resolve(call.program)).href);
  const start = names[0] in module ? module : module.default;
  let owner;
  let found = start;
  for (const name of names) [owner, found] = [found, found[name]];
  if (typeof found !== "function") throw new TypeError("no function");
  return found.bind(owner);
}

async function answered(call) {
  let called;
  try {
    called = await load(call);
  } catch {
    return '{"fault":"load"}';
  }
  try {
    return `{"value":${plain(await called(...call.args))}}`;
  } catch (error) {
    if (error instanceof NoJson) return '{"fault":"json"}';
    return `{"raised":${stringify(String(error?.constructor?.name ?? typeof error))}}`;
  }
}

const call = parse(readFileSync(0, "utf8"));
const frame = call.frame;
delete call.frame;
let left = Buffer.from(`\n${frame}${await answered(call)}\n`);
while (left.length) {
  try {
    left = left.subarray(writeSync(1, left));
  } catch (error) {
    if (error.code !== "EAGAIN") throw error;
  }
}
exit(0);
