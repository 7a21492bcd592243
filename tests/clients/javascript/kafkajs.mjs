// KafkaJS as a reader. Usage: read ADDRESS TOPIC | group ADDRESS TOPIC GROUP COUNT IDLE_MS
// It reads only as a group, so `read` is a group of its own. Codecs but gzip are given to it from outside.
import { decompress } from "fzstd";
import kafkajs from "kafkajs";
import snappy from "kafkajs-snappy";
import lz4 from "kafkajs-lz4";

const { Kafka, CompressionTypes, CompressionCodecs, logLevel } = kafkajs;
CompressionCodecs[CompressionTypes.Snappy] = snappy;
CompressionCodecs[CompressionTypes.LZ4] = new lz4().codec;
CompressionCodecs[CompressionTypes.ZSTD] = () => ({ decompress: async (buffer) => Buffer.from(decompress(buffer)) });

const [mode, address, topic, ...rest] = process.argv.slice(2);
const kafka = new Kafka({ brokers: [address], logLevel: logLevel.NOTHING });

const base64 = (octets) => (octets === null || octets === undefined ? null : Buffer.from(octets).toString("base64"));

function tell(partition, message) {
  const headers = Object.entries(message.headers ?? {}).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).map((each) => ({ name, value: base64(each) })),
  );
  const { offset, timestamp, key, value } = message;
  const line = { partition, offset: Number(offset), kind: 0, time: timestamp, key: base64(key), value: base64(value), headers };
  process.stdout.write(JSON.stringify(line) + "\n");
}

async function run(group, count, idle) {
  const consumer = kafka.consumer({ groupId: group, sessionTimeout: 6000, heartbeatInterval: 500 });
  let seen = 0;
  let until = Date.now() + idle;
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  await consumer.run({
    autoCommit: true,
    autoCommitThreshold: 1,
    eachMessage: async ({ partition, message }) => {
      tell(partition, message);
      seen += 1;
      until = Date.now() + idle;
    },
  });
  while (seen < count && Date.now() < until) await new Promise((resolve) => setTimeout(resolve, 50));
  await consumer.disconnect();
}

if (mode === "read") await run(`read-${process.pid}-${Date.now()}`, Infinity, 8000);
else await run(rest[0], Number(rest[1]), Number(rest[2]));
