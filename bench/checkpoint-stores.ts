import { execFile } from 'node:child_process';
import { mkdtemp, open, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { GetObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { type ObjectStore, openObjectStore } from '../platform/object-store/index.js';
import { S3Store } from '../platform/object-store/s3/store.js';
import { startRadosgw, whyNoRadosgw } from '../platform/testing/radosgw.js';

/** An object store, and a minimal parallel client of the same storage as the baseline. */
export interface MeasuredStore {
  name: string;
  objects: ObjectStore;
  /** Writes or reads pieces, `LANES` at once, without any other work. */
  rawWrite(pieces: readonly Uint8Array[]): Promise<void>;
  rawRead(pieces: readonly Uint8Array[]): Promise<void>;
  /** Drops written data from the page cache, so that the next reader reads the disk. */
  forget(): Promise<void>;
  /** Removes all written data and frees its space. */
  clear(): Promise<void>;
  close(): Promise<void>;
}

/** Concurrent requests of a multipart upload. */
const LANES = 4;
/** Larger than one part of an upload. */
const FIRST_BYTES = 9 * 1024 * 1024;

async function inLanes<T>(
  items: readonly T[],
  work: (item: T, index: number) => Promise<void>,
): Promise<void> {
  const queue = items.entries();
  const lane = async () => {
    for (const [index, item] of queue) await work(item, index);
  };
  await Promise.all(Array.from({ length: LANES }, lane));
}

export async function directoryStore(): Promise<MeasuredStore> {
  const dir = await mkdtemp(join(tmpdir(), 'zf-bench-'));
  const objects = await openObjectStore(pathToFileURL(join(dir, 'objects')).href, { create: true });
  const at = (index: number) => join(dir, `raw-${index}`);
  return {
    name: 'directory',
    objects,
    rawWrite: (pieces) =>
      inLanes(pieces, async (piece, index) => {
        const file = await open(at(index), 'w');
        await file.writeFile(piece);
        await file.sync();
        await file.close();
      }),
    rawRead: (pieces) => inLanes(pieces, async (_, index) => void (await readFile(at(index)))),
    forget: async () => {
      for (const entry of await readdir(dir, { recursive: true, withFileTypes: true })) {
        if (entry.isFile()) await forgetFile(join(entry.parentPath, entry.name));
      }
    },
    clear: async () => {
      await removeAll(objects);
      for (const name of await readdir(dir)) if (name.startsWith('raw-')) await rm(join(dir, name));
    },
    close: async () => {
      await objects.close();
      for (const name of await readdir(dir)) await rm(join(dir, name), { recursive: true });
      await rm(dir, { recursive: true });
    },
  };
}

/** Node.js has no call for it. */
async function forgetFile(path: string): Promise<void> {
  await promisify(execFile)('dd', [`if=${path}`, 'iflag=nocache', 'count=0']);
}

async function removeAll(objects: ObjectStore): Promise<void> {
  const keys: string[] = [];
  for await (const { key } of objects.list('')) keys.push(key);
  await objects.delete(keys);
}

/** Reserve of the storage daemon, pieces that exist twice during garbage collection, and its own records. */
const SPACE_FACTOR = 2;

/**
 * Ceph's radosgw on loopback, all in memory; or the reason why it is missing. @param bytes bytes written before a clear
 */
export async function s3Store(bytes: number): Promise<MeasuredStore | string> {
  const missing = await whyNoRadosgw();
  if (missing !== null) return missing;
  const server = await startRadosgw(SPACE_FACTOR * bytes);
  const { endpoint, region, credentials } = server;
  const Bucket = 'bench';
  await server.createBucket(Bucket);
  const objects = new S3Store({ bucket: Bucket, prefix: 'store', endpoint, region, credentials });
  const all = new S3Store({ bucket: Bucket, prefix: '', endpoint, region, credentials });
  const client = new S3Client({
    endpoint,
    region,
    credentials,
    forcePathStyle: true,
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
  });
  const at = (index: number) => ({ Bucket, Key: `raw/${index}` });
  // The first multipart upload creates the server's pools, which is not part of the throughput.
  await objects.put('first', new Uint8Array(FIRST_BYTES));
  await objects.delete(['first']);
  return {
    name: 's3 (radosgw)',
    objects,
    rawWrite: (pieces) =>
      inLanes(
        pieces,
        async (Body, index) => void (await client.send(new PutObjectCommand({ ...at(index), Body }))),
      ),
    rawRead: (pieces) =>
      inLanes(pieces, async (_, index) => {
        const { Body } = await client.send(new GetObjectCommand(at(index)));
        await Body?.transformToByteArray();
      }),
    // The server keeps everything in its own memory.
    forget: async () => undefined,
    clear: async () => {
      await removeAll(all);
      await server.collectGarbage();
    },
    close: async () => {
      await Promise.all([objects.close(), all.close()]);
      client.destroy();
      await server.stop();
    },
  };
}
