import type { AuditEntry, Page } from '../../contracts/index.js';
import { indexKey, redisCall, type StoreContext } from '../core/context.js';
import { pageLimit } from '../core/listing.js';
import type { PageRequest } from '../core/paging.js';

interface AuditFilter extends PageRequest {
  principal_id?: string;
  operation?: string;
  resource?: string;
  /** RFC 3339, inclusive lower bound. */
  since?: string;
  /** RFC 3339, inclusive upper bound. */
  until?: string;
}

/** Approximate number of entries kept per project. */
const AUDIT_KEPT = 100_000;
const AUDIT_KEPT_DAYS = 400;

const DAY_MS = 86_400_000;
/** Entries read per command, and per page, while filtering. */
const SCAN_BATCH = 1000;
const SCAN_MOST = 10_000;

/** The audit log: each change and its author. Kept in Redis only. */
export function auditLog(context: StoreContext) {
  return {
    /**
     * Appends an entry, which is durable when the call resolves. Not deduplicated: a repeated call appends
     * again.
     */
    async appendAudit(project: string, entry: Omit<AuditEntry, 'id'>): Promise<void> {
      await context.commands.run('append_audit', {
        project,
        entry: JSON.stringify(entry),
        keep: AUDIT_KEPT,
        keep_ms: AUDIT_KEPT_DAYS * DAY_MS,
      });
    },

    /**
     * Lists entries, newest first. A call scans a bounded part of the log: a page may have fewer entries than
     * requested and still have a next page.
     */
    async listAudit(project: string, filter: AuditFilter = {}): Promise<Page<AuditEntry>> {
      const limit = pageLimit(filter.limit);
      const data: AuditEntry[] = [];
      let before = filter.after === undefined ? newestOf(filter) : `(${filter.after}`;
      for (let scanned = 0; scanned < SCAN_MOST; scanned += SCAN_BATCH) {
        const entries = await read(context, project, before, filter);
        for (const entry of entries) {
          if (!matches(entry, filter)) continue;
          // The entry after the limit shows that there is a next page.
          if (data.length === limit) return { data, next_cursor: data.at(-1)?.id ?? null };
          data.push(entry);
        }
        const last = entries.at(-1);
        if (last === undefined || entries.length < SCAN_BATCH) return { data, next_cursor: null };
        before = `(${last.id}`;
      }
      return { data, next_cursor: before.slice(1) };
    },
  };
}

async function read(
  context: StoreContext,
  project: string,
  before: string,
  { since }: AuditFilter,
): Promise<AuditEntry[]> {
  const log = indexKey(context, project, 'audit-log');
  const oldest = since === undefined ? '-' : String(Date.parse(since));
  const found = await redisCall(context.redis.xrevrange(log, before, oldest, 'COUNT', SCAN_BATCH));
  return found.map(([id, [, text = '{}']]) => ({ ...JSON.parse(text), id }));
}

function newestOf({ until }: AuditFilter): string {
  return until === undefined ? '+' : String(Date.parse(until));
}

function matches(entry: AuditEntry, { principal_id, operation, resource }: AuditFilter): boolean {
  return (
    (principal_id === undefined || entry.principal_id === principal_id) &&
    (operation === undefined || entry.operation === operation) &&
    (resource === undefined || entry.resource === resource)
  );
}
