import java.time.Duration;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Collectors;
import java.util.stream.StreamSupport;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.processor.WallclockTimestampExtractor;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.processor.api.RecordMetadata;

/** Kafka Streams as a reader. Usage: ADDRESS TOPIC APPLICATION COUNT STATE_FOLDER */
public class StreamsReader {
    static final AtomicLong LEFT = new AtomicLong();
    static final CountDownLatch OVER = new CountDownLatch(1);

    public static void main(String[] args) throws Exception {
        LEFT.set(Long.parseLong(args[3]));
        Properties options = new Properties();
        options.put("bootstrap.servers", args[0]);
        options.put("application.id", args[2]);
        options.put("state.dir", args[4]);
        options.put("default.timestamp.extractor", WallclockTimestampExtractor.class);
        options.put("consumer.isolation.level", "read_committed");
        options.put("consumer.auto.offset.reset", "earliest");
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(args[1], org.apache.kafka.streams.kstream.Consumed.with(Serdes.ByteArray(), Serdes.ByteArray()))
            .process(Teller::new);
        Throwable[] failed = new Throwable[1];
        try (KafkaStreams streams = new KafkaStreams(builder.build(), options)) {
            streams.setUncaughtExceptionHandler(error -> {
                failed[0] = error;
                OVER.countDown();
                return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
            });
            streams.start();
            if (!OVER.await(120, TimeUnit.SECONDS)) {
                failed[0] = new IllegalStateException(LEFT.get() + " records did not come");
            }
            streams.close(Duration.ofSeconds(20));
        }
        if (failed[0] != null) {
            failed[0].printStackTrace();
            System.exit(1);
        }
        System.exit(0);
    }

    static class Teller extends ContextualProcessor<byte[], byte[], Void, Void> {
        @Override
        public void process(Record<byte[], byte[]> record) {
            RecordMetadata from = context().recordMetadata().orElseThrow();
            String headers = StreamSupport.stream(record.headers().spliterator(), false)
                .map(header -> String.format("{\"name\":%s,\"value\":%s}", quoted(header.key()), base64(header.value())))
                .collect(Collectors.joining(","));
            System.out.println(String.format(
                "{\"partition\":%d,\"offset\":%d,\"kind\":0,\"time\":0,\"key\":%s,\"value\":%s,\"headers\":[%s]}",
                from.partition(), from.offset(), base64(record.key()), base64(record.value()), headers));
            if (LEFT.decrementAndGet() == 0) {
                OVER.countDown();
            }
        }
    }

    static String base64(byte[] octets) {
        return octets == null ? "null" : '"' + java.util.Base64.getEncoder().encodeToString(octets) + '"';
    }

    static String quoted(String text) {
        return '"' + text.replace("\\", "\\\\").replace("\"", "\\\"") + '"';
    }
}
