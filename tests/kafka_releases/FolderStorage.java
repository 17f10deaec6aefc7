import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.server.log.remote.storage.LogSegmentData;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata.CustomMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteResourceNotFoundException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager;

/** Remote storage (KIP-405) in a folder of this machine, for releases without a published one: a file per part. */
public class FolderStorage implements RemoteStorageManager {
    private Path root;

    @Override
    public void configure(Map<String, ?> configs) {
        root = Path.of(configs.get("dir").toString(), "kafka-tiered-storage");
    }

    @Override
    public Optional<CustomMetadata> copyLogSegmentData(RemoteLogSegmentMetadata segment, LogSegmentData data)
            throws RemoteStorageException {
        try {
            Files.createDirectories(file(segment, "log").getParent());
            copy(data.offsetIndex(), file(segment, IndexType.OFFSET.name()));
            copy(data.timeIndex(), file(segment, IndexType.TIMESTAMP.name()));
            copy(data.producerSnapshotIndex(), file(segment, IndexType.PRODUCER_SNAPSHOT.name()));
            if (data.transactionIndex().isPresent()) {
                copy(data.transactionIndex().get(), file(segment, IndexType.TRANSACTION.name()));
            }
            ByteBuffer epochs = data.leaderEpochIndex().duplicate();
            byte[] bytes = new byte[epochs.remaining()];
            epochs.get(bytes);
            Files.write(file(segment, IndexType.LEADER_EPOCH.name()), bytes);
            copy(data.logSegment(), file(segment, "log"));
        } catch (IOException error) {
            throw new RemoteStorageException(error);
        }
        return Optional.empty();
    }

    @Override
    public InputStream fetchLogSegment(RemoteLogSegmentMetadata segment, int start) throws RemoteStorageException {
        return fetchLogSegment(segment, start, Integer.MAX_VALUE - 1);
    }

    @Override
    public InputStream fetchLogSegment(RemoteLogSegmentMetadata segment, int start, int end)
            throws RemoteStorageException {
        try (FileChannel channel = FileChannel.open(existing(segment, "log"))) {
            long last = Math.min(end + 1L, channel.size());
            ByteBuffer part = ByteBuffer.allocate((int) Math.max(0, last - start));
            channel.position(start);
            Channels.newInputStream(channel).readNBytes(part.array(), 0, part.capacity());
            return new ByteArrayInputStream(part.array());
        } catch (IOException error) {
            throw new RemoteStorageException(error);
        }
    }

    @Override
    public InputStream fetchIndex(RemoteLogSegmentMetadata segment, IndexType type) throws RemoteStorageException {
        try {
            return new ByteArrayInputStream(Files.readAllBytes(existing(segment, type.name())));
        } catch (IOException error) {
            throw new RemoteStorageException(error);
        }
    }

    @Override
    public void deleteLogSegmentData(RemoteLogSegmentMetadata segment) throws RemoteStorageException {
        try {
            Files.deleteIfExists(file(segment, "log"));
            for (IndexType type : IndexType.values()) {
                Files.deleteIfExists(file(segment, type.name()));
            }
        } catch (IOException error) {
            throw new RemoteStorageException(error);
        }
    }

    @Override
    public void close() {}

    private Path existing(RemoteLogSegmentMetadata segment, String part) throws RemoteResourceNotFoundException {
        Path path = file(segment, part);
        if (!Files.exists(path)) {
            throw new RemoteResourceNotFoundException("no " + path);
        }
        return path;
    }

    private Path file(RemoteLogSegmentMetadata segment, String part) {
        var partition = segment.remoteLogSegmentId().topicIdPartition();
        return root.resolve(partition.topicPartition() + "-" + partition.topicId())
                .resolve(segment.remoteLogSegmentId().id() + "." + part);
    }

    private static void copy(Path from, Path to) throws IOException {
        Files.copy(from, to, StandardCopyOption.REPLACE_EXISTING);
    }
}
