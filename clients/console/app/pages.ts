import type { Scope } from '../../../contracts/types.js';
import { may } from './session.js';

interface Page {
  /** First part of its address. */
  name: string;
  /** Name in the navigation; null for a page that is reached from another one. */
  label: string | null;
  /** Scopes of which one is enough. */
  scopes: readonly Scope[];
}

/** In the order in which they are offered. */
export const PAGES: readonly Page[] = [
  { name: 'runs', label: 'Runs', scopes: ['jobs:read'] },
  { name: 'sweeps', label: 'Sweeps', scopes: ['jobs:read'] },
  { name: 'compare', label: null, scopes: ['jobs:read'] },
  { name: 'playground', label: 'Playground', scopes: ['jobs:write'] },
  { name: 'fleet', label: 'Fleet', scopes: ['jobs:read'] },
  { name: 'datasets', label: 'Datasets', scopes: ['datasets'] },
  { name: 'models', label: 'Models', scopes: ['models'] },
  { name: 'new', label: 'New run', scopes: ['jobs:write'] },
  { name: 'admin', label: 'Admin', scopes: ['admin'] },
];

export const mayOpen = ({ scopes }: Page) => scopes.some(may);

/** Returns the name of the first page that the session may open, for an address without a name. */
export const firstPage = () => PAGES.find(mayOpen)?.name ?? 'runs';
