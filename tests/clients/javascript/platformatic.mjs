// @platformatic/kafka as a reader. Usage: read ADDRESS TOPIC [TIME] | group ADDRESS TOPIC GROUP COUNT IDLE_MS [PROTOCOL]
import { Consumer, ListOffsetTimestamps } from "@platformatic/kafka";

const [mode, address, topic, ...rest] = process.argv.slice(2);

const base64 = (octets) => (octets === null || octets === undefined ? null : Buffer.from(octets).toString("base64"));

function tell({ partition, offset, timestamp, key, value, headers }) {
  const shown = [...headers].map(([name, octets]) => ({ name: name.toString(), value: base64(octets) }));
  const line = { partition, offset: Number(offset), kind: 0, time: String(timestamp), key: base64(key), value: base64(value) };
  process.stdout.write(JSON.stringify({ ...line, headers: shown }) + "\n");
}

function made(group, options = {}) {
  return new Consumer({
    groupId: group,
    clientId: "reader",
    bootstrapBrokers: [address],
    isolationLevel: 1, // READ_COMMITTED
    maxBytes: 64 << 20,
    retries: 5,
    ...options,
  });
}

/** Tell records until there are `count`, `isDone` says so, or none came for `idle` milliseconds. */
async function take(stream, idle, isDone) {
  const records = stream[Symbol.asyncIterator]();
  for (;;) {
    let timer;
    const late = new Promise((resolve) => (timer = setTimeout(resolve, idle, { done: true })));
    const { value, done } = await Promise.race([records.next(), late]);
    clearTimeout(timer);
    if (done) return;
    tell(value);
    if (await isDone(value)) return;
  }
}

async function read(from) {
  const consumer = made(`read-${process.pid}`);
  const ask = (timestamp) => consumer.listOffsets({ topics: [topic], timestamp });
  const ends = (await ask(ListOffsetTimestamps.LATEST)).get(topic);
  const starts = (await ask(from === undefined ? ListOffsetTimestamps.EARLIEST : BigInt(from))).get(topic);
  const left = new Set();
  const offsets = [];
  starts.forEach((offset, partition) => {
    if (offset >= 0n && offset < ends[partition]) left.add(partition);
    offsets.push({ topic, partition, offset: offset >= 0n ? offset : ends[partition] });
  });
  if (left.size > 0) {
    const stream = await consumer.consume({ topics: [topic], mode: "manual", offsets, autocommit: false });
    await take(stream, 8000, ({ partition, offset }) => {
      if (offset + 1n >= ends[partition]) left.delete(partition);
      return left.size === 0;
    });
  }
  await consumer.close(true);
}

async function group(name, count, idle, protocol) {
  const timing = protocol ? { groupProtocol: protocol } : { sessionTimeout: 6000, heartbeatInterval: 500, rebalanceTimeout: 6000 };
  const consumer = made(name, timing);
  const stream = await consumer.consume({ topics: [topic], mode: "committed", fallbackMode: "earliest", autocommit: false });
  let seen = 0;
  if (count > 0) {
    await take(stream, idle, async (record) => {
      await record.commit();
      seen += 1;
      return seen >= count;
    });
  }
  await consumer.close(true);
}

if (mode === "read") await read(rest[0]);
else await group(rest[0], Number(rest[1]), Number(rest[2]), rest[3]);
process.exit(0);
