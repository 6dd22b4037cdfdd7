/**
 * Object store in a local directory: the default of the embedded stack, or a shared file system.
 *
 * A put writes a temporary file inside the root, syncs it, and names it in one step: `rename` to replace,
 * `link` to create only. `link` fails when the name exists, so a race has one winner. Then the directories
 * are synced. A crash leaves at most a temporary file, which the next store opened on the root sweeps when it
 * is a day old.
 */
import { randomUUID } from 'node:crypto';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { BodyError, bodyPieces, stablePieces, wholeBody } from '../common/body.js';
import { ObjectStoreError } from '../common/errors.js';
import { checkKey, checkPrefix, checkRange, rangeError } from '../common/keys.js';
import type { ByteRange, ObjectInfo, ObjectStore, PutBody, PutOptions } from '../common/port.js';
import { startGenerator } from '../common/start-generator.js';
import { DirectWriter } from './direct-write.js';
import { fileError, isCode, openError } from './errors.js';
import {
  DIRECTORY_MODE,
  FILE_MODE,
  type FileHandle,
  type FileSystem,
  nodeFileSystem,
} from './file-system.js';
import { infoOf } from './info.js';
import { readPieces, readWhole, writePieces, writeStable } from './pieces.js';
import { sortedEntries } from './sorted-entries.js';
import { syncDirectories } from './sync-directories.js';

const TEMP_DIR = '.tmp';
const TEMP_MAX_AGE_MS = 24 * 3600 * 1000;
/** Attempts of a put to create its directory, which a concurrent delete may remove. */
const NAME_TRIES = 10;

interface FileStoreOptions {
  /** Creates a missing root. Otherwise a missing root is `bucket_not_found`. */
  create?: boolean;
  fileSystem?: FileSystem;
}

export class FileStore implements ObjectStore {
  readonly url: string;
  private readonly root: string;
  private readonly fs: FileSystem;
  private closed = false;

  private constructor(root: string, fileSystem: FileSystem) {
    this.root = root;
    this.fs = fileSystem;
    this.url = pathToFileURL(root).href;
  }

  /**
   * @param root absolute path of the directory that holds the objects
   * @throws ObjectStoreError `bucket_not_found`, `access_denied`, `disk_full`
   */
  static async open(root: string, options: FileStoreOptions = {}): Promise<FileStore> {
    const fs = options.fileSystem ?? nodeFileSystem;
    try {
      if (options.create) await fs.mkdir(root, { recursive: true, mode: DIRECTORY_MODE });
      // The real path, for the later check that paths are inside the root.
      const store = new FileStore(await fs.realpath(root), fs);
      await fs.mkdir(join(store.root, TEMP_DIR), { recursive: true, mode: DIRECTORY_MODE });
      await store.sweepTemporaries();
      return store;
    } catch (error) {
      throw openError(error, root);
    }
  }

  async put(key: string, body: PutBody, options: PutOptions = {}): Promise<{ bytes: number }> {
    this.checkCall(key);
    const { createOnly = false } = options;
    const temp = join(this.root, TEMP_DIR, randomUUID());
    let isThere = true;
    try {
      const content = createOnly ? await wholeBody(key, body) : body;
      const bytes = await this.writeTemporary(temp, content);
      await this.giveName(temp, key, createOnly);
      // A renamed file has no other name.
      isThere = createOnly;
      return { bytes };
    } catch (error) {
      if (error instanceof BodyError) throw error.cause;
      // The root is never created here: an unmounted disk must not lead to writes on the disk below it.
      throw fileError(error, key, 'bucket_not_found');
    } finally {
      if (isThere) await this.fs.unlink(temp).catch(() => undefined);
    }
  }

  async get(key: string, range?: ByteRange, into?: Buffer): Promise<Buffer> {
    const opened = await this.openRange(key, range);
    return readWhole(opened.file, key, opened.range, into);
  }

  async stream(key: string, range?: ByteRange): Promise<AsyncIterable<Uint8Array>> {
    const opened = await this.openRange(key, range);
    return startGenerator(readPieces(opened.file, key, opened.range));
  }

  async head(key: string): Promise<ObjectInfo | null> {
    this.checkCall(key);
    try {
      const stat = await this.fs.stat(await this.existingPath(key), { bigint: true });
      return stat.isFile() ? infoOf(key, stat) : null;
    } catch (error) {
      const typed = await this.readError(error, key);
      if (typed.code === 'object_not_found') return null;
      throw typed;
    }
  }

  async downloadUrl(key: string): Promise<null> {
    this.checkCall(key);
    return null;
  }

  async uploadUrl(key: string): Promise<null> {
    this.checkCall(key);
    return null;
  }

  async *list(prefix: string): AsyncGenerator<ObjectInfo> {
    this.checkOpen();
    checkPrefix(prefix);
    try {
      await this.fs.stat(join(this.root, TEMP_DIR));
    } catch (error) {
      throw fileError(error, this.root, 'bucket_not_found');
    }
    yield* this.walk(prefix.slice(0, prefix.lastIndexOf('/') + 1), prefix);
  }

  async delete(keys: readonly string[]): Promise<void> {
    this.checkOpen();
    for (const key of keys) checkKey(key);
    for (const key of keys) {
      try {
        await this.fs.rm(await this.existingPath(key));
        await this.pruneEmptyParents(key);
      } catch (error) {
        const typed = await this.readError(error, key);
        if (typed.code !== 'object_not_found') throw typed;
      }
    }
  }

  async abandonUploads(prefix: string): Promise<number> {
    this.checkOpen();
    checkPrefix(prefix);
    return 0;
  }

  async check(): Promise<void> {
    this.checkOpen();
    const temp = join(this.root, TEMP_DIR, randomUUID());
    try {
      await this.writeTemporary(temp, new Uint8Array([0]));
    } catch (error) {
      throw fileError(error, this.root, 'bucket_not_found');
    } finally {
      await this.fs.unlink(temp).catch(() => undefined);
    }
  }

  async close(): Promise<void> {
    this.closed = true;
  }

  private checkCall(key: string): void {
    this.checkOpen();
    checkKey(key);
  }

  private checkOpen(): void {
    if (this.closed) throw new ObjectStoreError('invalid_argument', 'the object store is closed');
  }

  private async writeTemporary(path: string, body: PutBody): Promise<number> {
    const file = await this.fs.open(path, 'wx', FILE_MODE);
    const direct = new DirectWriter(this.fs, path);
    try {
      const stable = stablePieces(body);
      return await (stable ? writeStable(file, stable, direct) : writePieces(file, bodyPieces(body)));
    } finally {
      await direct.close().finally(() => file.close());
    }
  }

  private async giveName(temp: string, key: string, createOnly: boolean): Promise<void> {
    const target = join(this.root, key);
    for (let tries = 1; ; tries += 1) {
      let firstMade: string | undefined;
      try {
        firstMade = await this.fs.mkdir(dirname(target), { recursive: true, mode: DIRECTORY_MODE });
        await this.checkInside(dirname(target), key);
        await (createOnly ? this.linkNew(temp, target, key) : this.fs.rename(temp, target));
      } catch (error) {
        if (!isCode(error, 'ENOENT') || tries === NAME_TRIES) throw error;
        continue;
      }
      return syncDirectories(this.fs, dirname(target), firstMade, join(this.root, TEMP_DIR));
    }
  }

  private async linkNew(temp: string, target: string, key: string): Promise<void> {
    try {
      await this.fs.link(temp, target);
    } catch (error) {
      if (!isCode(error, 'EEXIST')) throw error;
      throw new ObjectStoreError('precondition_failed', `${key} exists already`);
    }
  }

  private async openRange(key: string, range?: ByteRange): Promise<{ file: FileHandle; range: ByteRange }> {
    this.checkCall(key);
    if (range) checkRange(range);
    let file: FileHandle | undefined;
    try {
      file = await this.fs.open(await this.existingPath(key), 'r');
      const stat = await file.stat();
      if (!stat.isFile()) throw new ObjectStoreError('object_not_found', `no object ${key}`);
      if (range && range.end > stat.size) throw rangeError(key, range, stat.size);
      return { file, range: range ?? { begin: 0, end: stat.size } };
    } catch (error) {
      await file?.close();
      throw await this.readError(error, key);
    }
  }

  private async existingPath(key: string): Promise<string> {
    const path = join(this.root, key);
    await this.checkInside(dirname(path), key);
    return path;
  }

  /** Refuses a symbolic link inside the root. Keys themselves cannot contain `..`. */
  private async checkInside(dir: string, key: string): Promise<void> {
    if ((await this.fs.realpath(dir)) !== dir) {
      throw new ObjectStoreError('access_denied', `${key} leads through a symbolic link`);
    }
  }

  /** Converts a read error. "No such file" is a missing object only while the root exists. */
  private async readError(error: unknown, key: string): Promise<ObjectStoreError> {
    if (!isCode(error, 'ENOENT', 'ENOTDIR', 'EISDIR')) return fileError(error, key, 'object_not_found');
    try {
      await this.fs.stat(join(this.root, TEMP_DIR));
    } catch (rootError) {
      return fileError(rootError, this.root, 'bucket_not_found');
    }
    return new ObjectStoreError('object_not_found', `no object ${key}`, { cause: error });
  }

  private async *walk(dir: string, prefix: string): AsyncGenerator<ObjectInfo> {
    for (const entry of await sortedEntries(this.fs, this.root, dir)) {
      const path = dir + entry;
      // Either may be longer: a directory on the way to the prefix, or a key that begins with it.
      if (!path.startsWith(prefix) && !prefix.startsWith(path)) continue;
      if (entry.endsWith('/')) yield* this.walk(path, prefix);
      else if (path.startsWith(prefix)) {
        const info = await this.head(path);
        if (info) yield info;
      }
    }
  }

  private async pruneEmptyParents(key: string): Promise<void> {
    for (let dir = dirname(key); dir !== '.'; dir = dirname(dir)) {
      try {
        await this.fs.rmdir(join(this.root, dir));
      } catch (error) {
        if (isCode(error, 'ENOTEMPTY', 'EEXIST', 'ENOENT')) return;
        throw error;
      }
    }
  }

  private async sweepTemporaries(): Promise<void> {
    const dir = join(this.root, TEMP_DIR);
    for (const entry of await this.fs.readdir(dir, { withFileTypes: true })) {
      const path = join(dir, entry.name);
      const stat = await this.fs.stat(path).catch(() => null);
      if (stat && Date.now() - stat.mtimeMs > TEMP_MAX_AGE_MS) await this.fs.rm(path, { force: true });
    }
  }
}
