// Reads messages, a length and a type name and bytes each, and writes what `convert` makes of them.
import { readFileSync, writeSync } from "node:fs";

export function each(convert) {
  const input = readFileSync(0);
  const output = [];
  let at = 0;
  const read = () => {
    const size = input.readUInt32LE(at);
    at += 4 + size;
    return input.subarray(at - size, at);
  };
  while (at < input.length) {
    const written = convert(read().toString(), read());
    const size = Buffer.alloc(4);
    size.writeUInt32LE(written.length);
    output.push(size, Buffer.from(written));
  }
  let rest = Buffer.concat(output);
  while (rest.length) rest = rest.subarray(writeSync(1, rest));
}
