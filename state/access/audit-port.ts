/** The port of the audit log: who has changed what. It is kept in Redis only. */
import type { AuditEntry, Page } from '../../contracts/index.js';
import type { PageRequest } from '../core/paging.js';

export interface AuditFilter extends PageRequest {
  key_id?: string;
  operation?: string;
  resource?: string;
  /** RFC 3339; entries from then on. */
  since?: string;
  /** RFC 3339; entries up to then. */
  until?: string;
}

export interface AuditLog {
  /** Durable when it resolves. Not deduplicated: a repeated call appends again. */
  appendAudit(project: string, entry: Omit<AuditEntry, 'id'>): Promise<void>;
  /**
   * Newest first. Of a long log not all is looked through at once: a page may have fewer entries than asked for and yet a next one.
   */
  listAudit(project: string, filter?: AuditFilter): Promise<Page<AuditEntry>>;
}
