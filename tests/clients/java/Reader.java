import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.LogTruncationException;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Kafka's Java client as a reader. Usage: read ADDRESS TOPIC [TIME] | group ADDRESS TOPIC GROUP COUNT IDLE_MS [PROTOCOL]
 * | resume ADDRESS TOPIC GROUP OFFSET EPOCH COUNT MILLIS RESET
 */
public class Reader {
    static final PrintStream OUT =
        new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);

    public static void main(String[] args) {
        if (args[0].equals("read")) {
            read(args[1], args[2], args.length > 3 ? Long.parseLong(args[3]) : -1);
        } else if (args[0].equals("resume")) {
            resume(args);
        } else {
            group(args);
        }
        OUT.flush();
    }

    static Properties options(String address) {
        Properties options = new Properties();
        options.put("bootstrap.servers", address);
        options.put("key.deserializer", ByteArrayDeserializer.class);
        options.put("value.deserializer", ByteArrayDeserializer.class);
        options.put("isolation.level", "read_committed");
        options.put("enable.auto.commit", "false");
        options.put("auto.offset.reset", "earliest");
        return options;
    }

    static void read(String address, String topic, long from) {
        try (KafkaConsumer<byte[], byte[]> reading = new KafkaConsumer<>(options(address))) {
            List<TopicPartition> all = new ArrayList<>();
            reading.partitionsFor(topic).forEach(each -> all.add(new TopicPartition(topic, each.partition())));
            all.sort((one, other) -> one.partition() - other.partition());
            Map<TopicPartition, Long> ends = reading.endOffsets(all);
            for (TopicPartition place : all) {
                reading.assign(List.of(place));
                reading.seekToBeginning(List.of(place));
                if (from >= 0) {
                    OffsetAndTimestamp found = reading.offsetsForTimes(Map.of(place, from)).get(place);
                    if (found == null) {
                        continue;
                    }
                    reading.seek(place, found.offset());
                }
                while (reading.position(place) < ends.get(place)) {
                    reading.poll(Duration.ofMillis(200)).forEach(Reader::tell);
                }
            }
        }
    }

    static void group(String[] args) {
        Properties options = options(args[1]);
        options.put("group.id", args[3]);
        if (args.length > 6) {
            options.put("group.protocol", args[6]);
        } else {
            options.put("session.timeout.ms", "6000");
            options.put("heartbeat.interval.ms", "500");
        }
        long count = Long.parseLong(args[4]), idle = Long.parseLong(args[5]), seen = 0;
        long until = System.currentTimeMillis() + idle;
        try (KafkaConsumer<byte[], byte[]> reading = new KafkaConsumer<>(options)) {
            reading.subscribe(List.of(args[2]));
            while (seen < count && System.currentTimeMillis() < until) {
                for (ConsumerRecord<byte[], byte[]> record : reading.poll(Duration.ofMillis(200))) {
                    tell(record);
                    seen++;
                    until = System.currentTimeMillis() + idle;
                }
                reading.commitSync();
            }
        }
    }

    /** Reads partition 0 on from a committed offset with a leader epoch, for some records or some time. */
    static void resume(String[] args) {
        Properties options = options(args[1]);
        options.put("group.id", args[3]);
        options.put("auto.offset.reset", args[8]);
        TopicPartition place = new TopicPartition(args[2], 0);
        long count = Long.parseLong(args[6]), until = System.currentTimeMillis() + Long.parseLong(args[7]), seen = 0;
        Optional<Integer> epoch = Optional.of(Integer.parseInt(args[5]));
        try (KafkaConsumer<byte[], byte[]> committing = new KafkaConsumer<>(options)) {
            committing.assign(List.of(place));
            committing.commitSync(Map.of(place, new OffsetAndMetadata(Long.parseLong(args[4]), epoch, "")));
        }
        System.err.println("committed");
        try (KafkaConsumer<byte[], byte[]> reading = new KafkaConsumer<>(options)) {
            reading.assign(List.of(place));
            while (seen < count && System.currentTimeMillis() < until) {
                for (ConsumerRecord<byte[], byte[]> record : reading.poll(Duration.ofMillis(200))) {
                    tell(record);
                    seen++;
                }
            }
        } catch (LogTruncationException error) {
            OUT.printf("{\"truncated\":%d}%n", error.divergentOffsets().get(place).offset());
        }
    }

    static void tell(ConsumerRecord<byte[], byte[]> record) {
        StringBuilder headers = new StringBuilder();
        for (Header each : record.headers()) {
            headers.append(headers.length() == 0 ? "" : ",");
            headers.append("{\"name\":").append(quoted(each.key())).append(",\"value\":").append(base64(each.value()));
            headers.append("}");
        }
        OUT.printf(
            "{\"partition\":%d,\"offset\":%d,\"kind\":%d,\"time\":%d,\"key\":%s,\"value\":%s,\"headers\":[%s]}%n",
            record.partition(), record.offset(), record.timestampType().id + 1, record.timestamp(),
            base64(record.key()), base64(record.value()), headers);
    }

    static String base64(byte[] octets) {
        return octets == null ? "null" : '"' + Base64.getEncoder().encodeToString(octets) + '"';
    }

    static String quoted(String text) {
        return '"' + text.replace("\\", "\\\\").replace("\"", "\\\"") + '"';
    }
}
