export { openJobStore } from './job-store.js';
export type * from './pools/pools-port.js';
export type * from './pools/worlds-port.js';
export type * from './port.js';
export type * from './streams/outbox-port.js';
export { startOutboxRelay } from './streams/outbox-relay.js';
export { startWebhookRelay } from './webhooks/webhook-relay.js';
