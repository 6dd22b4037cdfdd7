import type { AuditEntry } from '../../contracts/index.js';
import { indexKey, redisCall, type StoreContext } from '../core/context.js';
import { pageLimit } from '../core/listing.js';
import type { AuditFilter, AuditLog } from './audit-port.js';

/** Approximate number of entries kept per project. */
export const AUDIT_KEPT = 100_000;
export const AUDIT_KEPT_DAYS = 400;

const DAY_MS = 86_400_000;
/** Entries read per command, and per page, while filtering. */
const SCAN_BATCH = 1000;
const SCAN_MOST = 10_000;

export function auditLog(context: StoreContext): AuditLog {
  return {
    async appendAudit(project, entry) {
      await context.commands.run('append_audit', {
        project,
        entry: JSON.stringify(entry),
        keep: AUDIT_KEPT,
        keep_ms: AUDIT_KEPT_DAYS * DAY_MS,
      });
    },

    async listAudit(project, filter = {}) {
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
