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

/** Somewhere to put bytes, and the plainest parallel client of the same place beside it. */
export interface MeasuredStore {
  name: string;
  objects: ObjectStore;
  /** Puts pieces, or gets them again, with `LANES` at once and nothing else done to them. */
  rawWrite(pieces: readonly Uint8Array[]): Promise<void>;
  rawRead(pieces: readonly Uint8Array[]): Promise<void>;
  /** Takes what was put out of the system's memory, so that whoever reads it next reads the disk. */
  forget(): Promise<void>;
  /** Removes everything that was put, by whomever, and gives its room back. */
  clear(): Promise<void>;
  close(): Promise<void>;
}

/** As many requests at once as an upload in parts has under way. */
const LANES = 4;
/** More than a part of an upload. */
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

/** What a storage daemon keeps free, the pieces that are there once more while garbage is collected, and its own records. */
const ROOM = 2;

/**
 * Ceph's radosgw on loopback, everything in memory; or why there is none.
 * @param bytes how much is put before it is cleared
 */
export async function s3Store(bytes: number): Promise<MeasuredStore | string> {
  const missing = await whyNoRadosgw();
  if (missing !== null) return missing;
  const server = await startRadosgw(ROOM * bytes);
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
  // The first upload in parts makes the server's pools, which is no matter of throughput.
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
    // The server has everything in memory, and its own.
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
