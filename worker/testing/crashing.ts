/** Simulated process that dies at a chosen call: all later calls fail without effect. */

import type { ObjectInfo } from '../../platform/object-store/common/port.js';
import type { FileSystem } from '../../platform/object-store/file/file-system.js';
import type { ObjectStore } from '../../platform/object-store/index.js';

/** Before the call takes effect, or after it and before the reply. */
export type CrashMoment = 'before' | 'after';

export class Crash {
  /** Names of the calls so far. */
  readonly calls: string[] = [];
  private dead = false;

  private previous: string | undefined;

  /**
   * Creates a crash.
   * @param at number of the fatal call, from 1 on
   * @param counts whether a call counts, by its name and that of the call before it
   */
  constructor(
    private readonly at: number,
    private readonly moment: CrashMoment,
    private readonly counts: (name: string, previous: string | undefined) => boolean = () => true,
  ) {}

  get happened(): boolean {
    return this.dead;
  }

  async call<T>(name: string, work: () => Promise<T>): Promise<T> {
    const fatal = this.begin(name);
    const result = await work();
    if (fatal) {
      this.dead = true;
      throw new Error(`died after ${name}`);
    }
    return result;
  }

  /**
   * Counts a call.
   * @returns whether the process dies after it
   * @throws Error when the process is dead or dies before it
   */
  begin(name: string): boolean {
    if (this.dead) throw new Error(`dead: ${name}`);
    const counts = this.counts(name, this.previous);
    this.previous = name;
    if (!counts) return false;
    this.calls.push(name);
    if (this.calls.length !== this.at) return false;
    if (this.moment === 'after') return true;
    this.dead = true;
    throw new Error(`died before ${name}`);
  }

  /** Wraps every method of `target` that returns a promise, except for those in `free`, which do not count as calls. */
  wrap<T extends object>(target: T, label: string, free: readonly string[] = []): T {
    return new Proxy(target, {
      get: (object, name) => {
        const value: unknown = Reflect.get(object, name);
        if (typeof value !== 'function') return value;
        const call = (...args: unknown[]) => value.apply(object, args);
        if (typeof name === 'symbol' || free.includes(name)) return call;
        return (...args: unknown[]) => this.call(`${label}.${name}${lastPart(args[0])}`, () => call(...args));
      },
    });
  }
}

/** Returns the last part of a key or path, to name the call. */
function lastPart(value: unknown): string {
  return typeof value === 'string' ? ` ${value.split('/').at(-1)}` : '';
}

/** Wraps an object store. `list` returns a generator; the whole listing is one call. */
export function crashingObjects(objects: ObjectStore, crash: Crash): ObjectStore {
  const wrapped = crash.wrap(objects, 'objects', ['list', 'close']);
  return new Proxy(wrapped, {
    get: (object, name) => {
      if (name !== 'list') return Reflect.get(object, name);
      return async function* list(prefix: string) {
        yield* await crash.call(`objects.list ${prefix}`, () => listed(objects, prefix));
      };
    },
  });
}

async function listed(objects: ObjectStore, prefix: string): Promise<ObjectInfo[]> {
  const found: ObjectInfo[] = [];
  for await (const info of objects.list(prefix)) found.push(info);
  return found;
}

/** Wraps a file system. The files of a dead process are closed, as by the operating system. */
export function crashingFileSystem(fileSystem: FileSystem, crash: Crash): FileSystem {
  const wrapped = members(crash.wrap(fileSystem, 'fs'));
  return {
    ...wrapped,
    open: async (...args) => {
      const file = await wrapped.open(...args);
      const counted = crash.wrap(file, 'file');
      return new Proxy(counted, {
        get: (object, name) => {
          if (name !== 'close') return Reflect.get(object, name);
          return () => crash.call('file.close', async () => undefined).finally(() => file.close());
        },
      });
    },
  };
}

/** Copies the members, because a proxy has none to spread. */
function members(wrapped: FileSystem): FileSystem {
  const { link, mkdir, open, readdir, realpath, rename, rm, rmdir, stat, unlink } = wrapped;
  return { link, mkdir, open, readdir, realpath, rename, rm, rmdir, stat, unlink };
}
