// Keep code under test from replacing the assertions of its tests.
const assert = require("node:assert");

for (const object of [assert, assert.strict]) {
  for (const name of Object.keys(object)) {
    Object.defineProperty(object, name, { writable: false, configurable: false });
  }
}
