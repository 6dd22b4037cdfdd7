/** The port of the audit log: each change and its author. Kept in Redis only. */
import type { AuditEntry, Page } from '../../contracts/index.js';
import type { PageRequest } from '../core/paging.js';

export interface AuditFilter extends PageRequest {
  principal_id?: string;
  operation?: string;
  resource?: string;
  /** RFC 3339, inclusive lower bound. */
  since?: string;
  /** RFC 3339, inclusive upper bound. */
  until?: string;
}

export interface AuditLog {
  /** Appends an entry, which is durable when the call resolves. Not deduplicated: a repeated call appends again. */
  appendAudit(project: string, entry: Omit<AuditEntry, 'id'>): Promise<void>;
  /**
   * Lists entries, newest first. A call scans a bounded part of the log: a page may have fewer entries than requested and still have a
   * next page.
   */
  listAudit(project: string, filter?: AuditFilter): Promise<Page<AuditEntry>>;
}
