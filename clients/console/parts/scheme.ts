import { signal } from '@preact/signals';

const dark = matchMedia('(prefers-color-scheme: dark)');

/** Whether the page is dark. What is drawn on a canvas is drawn again when this changes. */
export const isDark = signal(dark.matches);

dark.addEventListener('change', () => {
  isDark.value = dark.matches;
});
