import java.time.Duration;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.processor.api.RecordMetadata;

/** Kafka Streams as a reader. Usage: read ADDRESS TOPIC | group ADDRESS TOPIC GROUP COUNT IDLE_MS */
public class StreamsReader {
    static final AtomicLong SEEN = new AtomicLong(), LAST = new AtomicLong(System.nanoTime());

    public static void main(String[] args) throws Exception {
        boolean isGroup = args[0].equals("group");
        String name = isGroup ? args[3] : "read-" + ProcessHandle.current().pid() + "-" + System.nanoTime();
        long count = isGroup ? Long.parseLong(args[4]) : Long.MAX_VALUE;
        long idle = isGroup ? Long.parseLong(args[5]) : 10_000;
        StreamsBuilder builder = new StreamsBuilder();
        Consumed<byte[], byte[]> octets = Consumed.with(Serdes.ByteArray(), Serdes.ByteArray());
        builder.stream(args[2], octets.withTimestampExtractor((record, before) -> Math.max(0, record.timestamp())))
            .process(Printer::new);
        Properties options = new Properties();
        options.put(StreamsConfig.APPLICATION_ID_CONFIG, name);
        options.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, args[1]);
        options.put(StreamsConfig.STATE_DIR_CONFIG, System.getProperty("java.io.tmpdir") + "/" + name + System.nanoTime());
        options.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
        options.put(StreamsConfig.consumerPrefix(ConsumerConfig.ISOLATION_LEVEL_CONFIG), "read_committed");
        options.put(StreamsConfig.consumerPrefix(ConsumerConfig.SESSION_TIMEOUT_MS_CONFIG), 6000);
        options.put(StreamsConfig.consumerPrefix(ConsumerConfig.HEARTBEAT_INTERVAL_MS_CONFIG), 500);
        try (KafkaStreams streams = new KafkaStreams(builder.build(), options)) {
            streams.start();
            while (SEEN.get() < count && System.nanoTime() - LAST.get() < idle * 1_000_000) {
                if (streams.state() == KafkaStreams.State.ERROR) {
                    System.exit(1);
                }
                Thread.sleep(50);
            }
            streams.close(new KafkaStreams.CloseOptions().leaveGroup(true).timeout(Duration.ofSeconds(10)));
        }
        System.out.flush();
    }

    static class Printer extends ContextualProcessor<byte[], byte[], Void, Void> {
        @Override
        public void process(Record<byte[], byte[]> record) {
            RecordMetadata place = context().recordMetadata().orElseThrow();
            StringBuilder headers = new StringBuilder();
            for (Header header : record.headers()) {
                headers.append(headers.length() == 0 ? "" : ",");
                headers.append("{\"name\":").append(quoted(header.key()));
                headers.append(",\"value\":").append(base64(header.value())).append("}");
            }
            System.out.printf(
                "{\"partition\":%d,\"offset\":%d,\"kind\":0,\"time\":%d,\"key\":%s,\"value\":%s,\"headers\":[%s]}%n",
                place.partition(), place.offset(), record.timestamp(),
                base64(record.key()), base64(record.value()), headers);
            LAST.set(System.nanoTime());
            SEEN.incrementAndGet();
        }
    }

    static String base64(byte[] octets) {
        return octets == null ? "null" : '"' + java.util.Base64.getEncoder().encodeToString(octets) + '"';
    }

    static String quoted(String text) {
        return '"' + text.replace("\\", "\\\\").replace("\"", "\\\"") + '"';
    }
}
