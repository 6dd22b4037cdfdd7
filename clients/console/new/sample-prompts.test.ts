import t from 'tap';
import type { Dataset } from '../../../contracts/types.js';
import { FIRST_DRAFT, valueAt, withValue } from './draft.js';
import { promptLines, withData, withPromptLines } from './sample-prompts.js';

const PROMPTS = ['checkpoint', 'samples', 'prompts'];

t.test('a line is a text to continue or a question', async (t) => {
  const texts = withPromptLines(FIRST_DRAFT, 'Once\n\n Twice', false);
  t.strictSame(valueAt(texts, PROMPTS), [{ prompt: 'Once' }, { prompt: ' Twice' }]);
  t.equal(promptLines(texts), 'Once\n Twice');
  const chats = withPromptLines(texts, 'Why?', true);
  t.strictSame(valueAt(chats, PROMPTS), [{ messages: [{ role: 'user', content: 'Why?' }] }]);
  t.equal(promptLines(chats), 'Why?');
  t.equal(promptLines(FIRST_DRAFT), '');
});

t.test('without prompts the document has no options of answers', async (t) => {
  const given = { checkpoint: { samples: { max_tokens: 9, prompts: [{ prompt: 'Once' }] }, every_steps: 5 } };
  t.strictSame(withPromptLines(given, 'Twice', false), {
    checkpoint: { samples: { max_tokens: 9, prompts: [{ prompt: 'Twice' }] }, every_steps: 5 },
  });
  t.strictSame(withPromptLines(given, ' \n', false), { checkpoint: { every_steps: 5 } });
});

t.test('prompts that are more than a line are left to the document', async (t) => {
  const user = { role: 'user', content: 'Why?' };
  for (const prompts of [
    'Once',
    ['Once'],
    [{ prompt: 'two\nlines' }],
    [{ prompt: 5 }],
    [{ messages: [] }],
    [{ messages: [{ ...user, role: 'system' }] }],
    [{ messages: [user, { role: 'assistant', content: 'Because.' }, user] }],
    [{ messages: [{ ...user, name: 'Ann' }] }],
    [{ prompt: 'Once' }, { prompt: 'Twice', seed: 1 }],
  ])
    t.equal(promptLines(withValue(FIRST_DRAFT, PROMPTS, prompts)), null, JSON.stringify(prompts));
});

t.test('another dataset asks in its own form', async (t) => {
  const counts = { num_preferences: 0, num_labelled: 0 };
  const [texts, chats] = [0, 1].map(
    (numChats) => ({ id: 'ds_1', num_chats: numChats, ...counts }) as Dataset,
  );
  const asked = withData(withPromptLines(FIRST_DRAFT, 'Why?', false), chats!);
  t.strictSame(valueAt(asked, PROMPTS), [{ messages: [{ role: 'user', content: 'Why?' }] }]);
  t.strictSame(valueAt(withData(asked, texts!), PROMPTS), [{ prompt: 'Why?' }]);
  const several = [{ prompt: 'two\nlines' }];
  t.strictSame(valueAt(withData(withValue(asked, PROMPTS, several), texts!), PROMPTS), several);
});
