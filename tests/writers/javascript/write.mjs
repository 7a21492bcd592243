// Reads each value by its schema and writes it again: write.mjs LIBRARY. Framed as tests/java/AvroJudge.java says.
import { readFileSync, writeSync } from "node:fs";

const LIBRARIES = {
  avsc: await ofAvsc(),
  stringify: () => (value) => Buffer.from(JSON.stringify(JSON.parse(value.toString()))),
  "stringify-indented": () => (value) => Buffer.from(JSON.stringify(JSON.parse(value.toString()), null, 2)),
};

async function ofAvsc() {
  const { default: avro } = await import("avsc").catch(() => ({ default: null }));
  return (schema) => {
    const long = avro.types.LongType.__with({
      fromBuffer: (buffer) => buffer.readBigInt64LE(),
      toBuffer: (number) => {
        const buffer = Buffer.alloc(8);
        buffer.writeBigInt64LE(number);
        return buffer;
      },
      fromJSON: BigInt,
      toJSON: Number,
      isValid: (number) => typeof number == "bigint",
      compare: (a, b) => (a === b ? 0 : a < b ? -1 : 1),
    });
    const typeHook = (part) => ((part.type ?? part) === "long" ? long : undefined);
    const type = avro.Type.forSchema(JSON.parse(schema), { typeHook, wrapUnions: true });
    return (value) => type.toBuffer(type.fromBuffer(value));
  };
}

const input = readFileSync(0);
let at = 0;

function number() {
  at += 4;
  return input.readInt32BE(at - 4);
}

function frame() {
  const size = number();
  at += size;
  return input.subarray(at - size, at);
}

function attempt(make) {
  try {
    return make();
  } catch (error) {
    console.error(`${process.argv[2]} refuses: ${error}`);
    return null;
  }
}

const output = [];
for (let cases = number(); cases > 0; cases--) {
  const schema = frame().toString();
  const write = attempt(() => LIBRARIES[process.argv[2]](schema));
  for (let values = number(); values > 0; values--) {
    const value = frame();
    const written = write && attempt(() => write(value));
    const size = Buffer.alloc(4);
    size.writeInt32BE(written ? written.length : -1);
    output.push(size, ...(written ? [written] : []));
  }
}
let rest = Buffer.concat(output);
while (rest.length) rest = rest.subarray(writeSync(1, rest));
