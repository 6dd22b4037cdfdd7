// npm run pack:client -- --out DIR: the package @zerofleet/client; see client-package/pack.mjs.
import { parseArgs } from 'node:util';
import { runMain } from './bootstrap/errors.mjs';
import { packClient } from './client-package/pack.mjs';

await runMain(async () => {
  const { values } = parseArgs({ options: { out: { type: 'string', default: '.build' } } });
  console.log(await packClient(values.out));
});
