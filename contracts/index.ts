/**
 * Types and rules shared by the API, the workers and the platform. Every JSON shape is generated from `openapi.yaml`
 * and has its name in types.ts. This module does no I/O and imports no other module.
 */
import type { Scope } from './types.js';

export type * from './types.js';

/** Scopes of API keys; `admin` includes every other scope but `operator`. */
export const SCOPES = [
  'jobs:read',
  'jobs:write',
  'datasets',
  'models',
  'admin',
  'operator',
] as const satisfies readonly Scope[];

export * from './errors.js';
export * from './field-error-codes.js';
export * from './job-states.js';
export * from './merge-patch.js';
export * from './nearest-name.js';
export * from './object-keys.js';
export * from './plain-text.js';
export * from './projects.js';
export * from './queue.js';
export * from './trace-context.js';
export * from './uris/hub-uri.js';
export * from './uris/s3-uri.js';
