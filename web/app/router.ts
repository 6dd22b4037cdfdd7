/** Views by the fragment of the address: `#/runs/job_…?tab=logs`. A fragment is never sent to a server. */
import { computed, signal } from '@preact/signals';

export interface Place {
  /** Parts of the path. */
  path: readonly string[];
  query: URLSearchParams;
}

export function parsePlace(hash: string): Place {
  const [path = '', query = ''] = hash.replace(/^#?\/?/, '').split('?', 2);
  return { path: path.split('/').filter(Boolean).map(decodeURIComponent), query: new URLSearchParams(query) };
}

/** Returns the address of a view. Empty values are left out. */
export function linkTo(
  path: readonly string[],
  query: Readonly<Record<string, string | readonly string[] | undefined>> = {},
): string {
  const params = new URLSearchParams();
  for (const [name, values] of Object.entries(query))
    for (const value of [values ?? []].flat()) if (value !== '') params.append(name, value);
  const search = params.toString();
  return `#/${path.map(encodeURIComponent).join('/')}${search && `?${search}`}`;
}

const hash = signal(typeof location === 'undefined' ? '' : location.hash);

export const place = computed(() => parsePlace(hash.value));

/** Opens a view. With `replace` the browser's way back leaves out the present one. */
export function go(link: string, { replace = false } = {}): void {
  if (replace) history.replaceState(null, '', link);
  else history.pushState(null, '', link);
  hash.value = link;
}

/** Follows the address bar. */
export function followAddress(): void {
  addEventListener('hashchange', () => {
    hash.value = location.hash;
  });
  addEventListener('popstate', () => {
    hash.value = location.hash;
  });
}
