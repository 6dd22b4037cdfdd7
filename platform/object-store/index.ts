export { type ObjectStoreCode, ObjectStoreError } from './errors.js';
export { openObjectStore } from './open.js';
export * from './port.js';
