// npm start, npm run quickstart and others: runs the set-up, then a program. `node tools/run.mjs NAME [arguments]`.
import { runMain } from './bootstrap/errors.mjs';
import { launch } from './bootstrap/launch.mjs';

const programs = {
  start: 'dist/ops/stack/main.js',
  quickstart: 'dist/ops/quickstart/main.js',
  recover: 'dist/ops/recover/main.js',
  sample: 'dist/ops/sample/main.js',
  gc: 'dist/ops/gc/main.js',
  chaos: 'compiled/test/chaos/main.js',
  kubernetes: 'compiled/test/kubernetes/main.js',
  property: 'compiled/test/property/main.js',
};

await runMain(() => {
  const [name] = process.argv.splice(2, 1);
  return launch(programs[name]);
});
