/** A log that is computed again on other ranks. */
import t from 'tap';
import { commandLine } from '../cli/command-line.js';
import { ClientSession, smallSession, textPass, textRows, UPDATE } from '../support/sessions.js';
import { startStack } from '../support/stack.js';

t.test('a replay on two ranks finds the results of one rank', async (t) => {
  const { client } = await startStack(t);
  const session = await ClientSession.create(client, smallSession('one rank', 1));
  const prompts = textRows(3, 2).map(({ tokens }) => tokens);
  const [, , saved] = await session.run(textPass(0, 3), UPDATE, { type: 'save_state' });
  const checkpoint = saved && 'checkpoint' in saved ? saved.checkpoint : '';
  await session.run(
    textPass(3, 1),
    UPDATE,
    { type: 'load_state', checkpoint },
    { type: 'sample', prompts, max_tokens: 5 },
    textPass(4, 5),
    UPDATE,
    UPDATE,
    { type: 'finish' },
  );
  const { baseUrl, apiKey } = client.options;
  const zerofleet = commandLine({ ZEROFLEET_URL: baseUrl, ZEROFLEET_API_KEY: apiKey });
  const { code, out, err } = await zerofleet(['replay', session.id, '--ranks', '2']);
  t.same([code, out], [0, 'all 11 results are the same, bit for bit'], err);
});
