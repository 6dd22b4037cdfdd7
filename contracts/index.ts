/**
 * What the api, the workers and the platform share. Every JSON shape is generated from `openapi.yaml` and has its name in
 * types.ts; this room does no I/O and imports no other room.
 */
import type { Scope } from './types.js';

export type * from './types.js';

/** What an API key may do; `admin` includes every other scope but `operator`. */
export const SCOPES = [
  'jobs:read',
  'jobs:write',
  'datasets',
  'models',
  'admin',
  'operator',
] as const satisfies readonly Scope[];

export * from './errors.js';
export * from './job-states.js';
export * from './merge-patch.js';
export * from './nearest-name.js';
export * from './object-keys.js';
export * from './plain-text.js';
export * from './projects.js';
export * from './queue.js';
export * from './s3-uri.js';
export * from './trace-context.js';
