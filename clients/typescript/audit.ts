import type { operations } from '../../contracts/generated/openapi.js';
import type { AuditEntry } from '../../contracts/types.js';
import { allPages } from './pages.js';
import { bodyOf, type Http } from './transport.js';

type Query = NonNullable<operations['listAuditLog']['parameters']['query']>;
export type AuditFilter = Omit<Query, 'after' | 'limit'>;

/** Audit log, newest first; requires the scope `admin`. */
export function listAudit(http: Http, filter: AuditFilter = {}): AsyncIterable<AuditEntry> {
  return allPages((after) =>
    bodyOf('audit log', http.GET('/v1/audit-log', { params: { query: { ...filter, after, limit: 100 } } })),
  );
}
