/** The audit log's filters, as they stand in the address, and its entries in words. */

import type { AuditEntry } from '../../../contracts/types.js';
import type { AuditFilter } from '../../typescript/audit.js';
import { timeOf } from './fields.js';

export const FILTERS = ['operation', 'resource', 'principal_id', 'since', 'until'] as const;

/** Times are those of the browser: `2026-11-27T20:00`. */
export type Filters = Record<(typeof FILTERS)[number], string>;

export const filtersOf = (query: URLSearchParams) =>
  Object.fromEntries(FILTERS.map((name) => [name, query.get(name) ?? ''])) as Filters;

export function requestOf({ operation, resource, principal_id, since, until }: Filters): AuditFilter {
  return {
    operation: operation || undefined,
    resource: resource || undefined,
    principal_id: principal_id || undefined,
    since: timeOf(since),
    until: timeOf(until),
  };
}

/** An operation in words: `revokeApiKey` is "revoke api key". */
export const operationText = (operation: string) =>
  operation.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

const KINDS = { succeeded: 'good', refused: 'warn', failed: 'bad' } as const;

/** Class of the badge of an outcome. */
export const kindOf = ({ outcome }: Pick<AuditEntry, 'outcome'>) => KINDS[outcome];
