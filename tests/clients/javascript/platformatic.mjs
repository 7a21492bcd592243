// @platformatic/kafka as a reader. Usage: read ADDRESS TOPIC [TIME] | group ADDRESS TOPIC GROUP COUNT IDLE_MS [PROTOCOL]
import { Consumer, ListOffsetTimestamps, MessagesStreamFallbackModes, MessagesStreamModes } from "@platformatic/kafka";

const [mode, address, topic, ...rest] = process.argv.slice(2);

const base64 = (octets) => (octets === null || octets === undefined ? null : Buffer.from(octets).toString("base64"));

function tell({ partition, offset, timestamp, key, value, headers }) {
  const named = [...headers].map(([name, value]) => ({ name: Buffer.from(name).toString(), value: base64(value) }));
  const record = { partition, offset: Number(offset), kind: 0, time: `${timestamp}`, key: base64(key), value: base64(value) };
  process.stdout.write(JSON.stringify({ ...record, headers: named }) + "\n");
}

function consumer(groupId, options = {}) {
  return new Consumer({ clientId: "reader", groupId, bootstrapBrokers: [address], isolationLevel: 1, ...options });
}

async function take(client, stream, isLast, idle) {
  let timer;
  const isOver = new Promise((resolve) => {
    const wait = () => {
      clearTimeout(timer);
      timer = setTimeout(resolve, idle);
    };
    wait();
    stream.on("data", (message) => {
      wait();
      tell(message);
      if (isLast(message)) resolve();
    });
    stream.on("error", (error) => {
      console.error(error);
      process.exit(1);
    });
  });
  await isOver;
  clearTimeout(timer);
  await stream.close();
  await client.close(true);
}

async function read(from) {
  const client = consumer(`read-${process.pid}-${Date.now()}`);
  const [starts, ends] = await Promise.all(
    [from ?? ListOffsetTimestamps.EARLIEST, ListOffsetTimestamps.LATEST].map((timestamp) =>
      client.listOffsets({ topics: [topic], timestamp, isolationLevel: 1 }),
    ),
  );
  const left = new Map();
  const offsets = [];
  ends.get(topic).forEach((end, partition) => {
    const start = starts.get(topic)[partition];
    offsets.push({ topic, partition, offset: start < 0n ? end : start });
    if (start >= 0n && start < end) left.set(partition, end);
  });
  if (left.size === 0) return await client.close(true);
  const stream = await client.consume({ topics: [topic], mode: MessagesStreamModes.MANUAL, offsets, maxWaitTime: 200 });
  const isLast = ({ partition, offset }) => {
    if (offset + 1n >= left.get(partition)) left.delete(partition);
    return left.size === 0;
  };
  await take(client, stream, isLast, 10_000);
}

async function group(name, count, idle, protocol) {
  const times = protocol ? { groupProtocol: protocol } : { sessionTimeout: 6000, heartbeatInterval: 500, rebalanceTimeout: 6000 };
  const client = consumer(name, times);
  const stream = await client.consume({
    topics: [topic],
    mode: MessagesStreamModes.COMMITTED,
    fallbackMode: MessagesStreamFallbackModes.EARLIEST,
    maxWaitTime: 200,
    autocommit: true,
  });
  let seen = 0;
  await take(client, stream, () => ++seen >= count, idle);
}

if (mode === "read") await read(rest[0] === undefined ? undefined : BigInt(rest[0]));
else await group(rest[0], Number(rest[1]), Number(rest[2]), rest[3]);
