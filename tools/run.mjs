// npm start, npm run quickstart and others: runs the set-up, then a compiled program. `node tools/run.mjs NAME [arguments]`.
import { runMain } from './bootstrap/errors.mjs';
import { launch } from './bootstrap/launch.mjs';

const programs = {
  start: 'stack/main.js',
  quickstart: 'ops/quickstart/main.js',
  recover: 'ops/recover/main.js',
  sample: 'ops/sample/main.js',
  sweep: 'ops/sweep/main.js',
  chaos: 'test/chaos/main.js',
  property: 'test/property/main.js',
};

await runMain(() => {
  const [name] = process.argv.splice(2, 1);
  return launch(programs[name]);
});
