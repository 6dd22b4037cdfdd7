/** The view that the address names. */
import { computed, signal } from '@preact/signals';
import { parseRoute } from './route.js';

export { linkTo } from './route.js';

const hash = signal(location.hash);

export const route = computed(() => parseRoute(hash.value));

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
