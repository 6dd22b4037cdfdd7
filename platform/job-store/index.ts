export { openJobStore } from './job-store.js';
export type * from './outbox-port.js';
export { startOutboxRelay } from './outbox-relay.js';
export type * from './pools-port.js';
export type * from './port.js';
export { startWebhookRelay } from './webhook-relay.js';
export type * from './worlds-port.js';
