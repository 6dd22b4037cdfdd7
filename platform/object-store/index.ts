export { ObjectStoreError } from './common/errors.js';
export * from './common/port.js';
export { openObjectStore } from './open.js';
