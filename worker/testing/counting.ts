import type { ObjectStore } from '../../platform/object-store/index.js';

/** Counts the bytes read from objects with a key suffix. */
export class CountingObjects {
  bytes = 0;
  readonly objects: ObjectStore;

  constructor(objects: ObjectStore, ending: string) {
    const get: ObjectStore['get'] = async (key, range, into) => {
      const bytes = await objects.get(key, range, into);
      if (key.endsWith(ending)) this.bytes += bytes.length;
      return bytes;
    };
    // A load uses no streams, and their bytes would not be counted.
    const stream: ObjectStore['stream'] = () => Promise.reject(new Error('streams are not counted'));
    this.objects = new Proxy(objects, {
      get: (target, name) => {
        if (name === 'get') return get;
        if (name === 'stream') return stream;
        const value: unknown = Reflect.get(target, name);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
  }
}
