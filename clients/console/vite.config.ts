import { defineConfig } from 'vite';

/** The console as static files, which the API serves (api/plugins/console.ts). */
export default defineConfig({
  root: import.meta.dirname,
  // The API may be behind a path of a proxy.
  base: './',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: 'build',
    emptyOutDir: true,
    target: 'es2022',
    // It would be an inline script, which the content security policy forbids; browsers of this target need none.
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    sourcemap: false,
    reportCompressedSize: false,
    // Texts of the licenses of all bundled packages, which go with their code.
    license: { fileName: 'licenses.md' },
  },
  server: { proxy: { '/v1': 'http://127.0.0.1:8080', '/openai': 'http://127.0.0.1:8080' } },
});
