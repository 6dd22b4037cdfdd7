/** Events of a run in words. */
import type { JobEvent } from '../../contracts/types.js';
import { bytes, count, portion, ranks, words } from './numbers.js';

type Data = JobEvent['data'];

const join = (...parts: unknown[]) =>
  parts.filter((part) => part !== null && part !== undefined && part !== '').join(' · ');

const num = (value: unknown) => count(typeof value === 'number' ? value : null);
const size = (value: unknown) => (typeof value === 'number' ? bytes(value) : null);

/** Details by type; types that are not here show all their plain values. */
const DETAILS: Readonly<Record<string, (data: Data) => string>> = {
  'job.created': () => '',
  'job.state': ({ from, to, reason }) =>
    join(from ? `${from} → ${to}` : to, typeof reason === 'string' ? words(reason) : null),
  'data.preparing': ({ done_bytes, total_bytes }) => `${size(done_bytes)} of ${size(total_bytes)}`,
  'data.prepared': ({ documents, tokens, targets, sequences, padding, mixture, warnings }) =>
    join(
      `${num(documents)} documents`,
      `${num(tokens)} tokens, ${num(targets)} of them learned`,
      `${num(sequences)} sequences`,
      ...(Number(padding) > 0 ? [`${portion(Number(padding))} padding`] : []),
      ...sharesOf(mixture),
      ...messagesOf(warnings),
    ),
  'checkpoint.committed': ({ step, world_size, bytes: length }) =>
    join(`step ${num(step)}`, typeof world_size === 'number' ? ranks(world_size) : null, size(length)),
};

function sharesOf(mixture: unknown): string[] {
  if (!Array.isArray(mixture)) return [];
  return mixture.map(({ dataset, share }) => `${portion(Number(share))} ${dataset}`);
}

function messagesOf(warnings: unknown): string[] {
  if (!Array.isArray(warnings)) return [];
  return warnings.map(({ message }: { message?: unknown }) => `warning: ${message}`);
}

export function detailsOf({ type, data }: Pick<JobEvent, 'type' | 'data'>): string {
  return (DETAILS[type] ?? plainValues)(data);
}

function plainValues(data: Data): string {
  const plain = Object.entries(data).filter(([, value]) => value !== null && typeof value !== 'object');
  return join(...plain.map(([name, value]) => `${words(name)} ${plainValue(name, value)}`));
}

function plainValue(name: string, value: unknown): string {
  if (typeof value !== 'number') return String(value);
  if (/(^|_)bytes$/.test(name)) return bytes(value);
  return Number.isInteger(value) ? count(value) : String(Number(value.toPrecision(4)));
}

/** Returns whether an event reports a failure or a loss. */
export function isBad({ type, data }: Pick<JobEvent, 'type' | 'data'>): boolean {
  return /\b(lost|failed|fallback)$/.test(type) || data.to === 'failed';
}
