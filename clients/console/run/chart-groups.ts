import { compact } from '../parts/format.js';
import { PHASES } from './curve.js';

/** Values of a run that are drawn together. */
export interface ChartGroup {
  title: string;
  has(name: string): boolean;
  format?: (value: number) => string;
  ofBytes?: boolean;
}

const only = (wanted: string) => (name: string) => name === wanted;
const digits = (value: number) => value.toPrecision(4);

export const GROUPS: readonly ChartGroup[] = [
  { title: 'Loss', has: (name) => name === 'loss' || name.startsWith('eval '), format: digits },
  { title: 'Rate', has: only('lr'), format: digits },
  { title: 'Gradient norm', has: only('grad_norm'), format: digits },
  { title: 'Tokens per second', has: only('tokens_per_second'), format: compact },
  { title: 'Seconds of a step', has: (name) => (PHASES as readonly string[]).includes(name), format: digits },
  { title: 'Memory', has: only('memory'), ofBytes: true },
  { title: 'Ranks', has: only('ranks') },
  { title: 'Loss scale', has: only('loss_scale'), format: compact },
];

/** Returns how a value is drawn. */
export function formatOf(name: string): Pick<ChartGroup, 'format' | 'ofBytes'> {
  const { format, ofBytes } = GROUPS.find(({ has }) => has(name)) ?? {};
  return { ...(format && { format }), ...(ofBytes && { ofBytes }) };
}
