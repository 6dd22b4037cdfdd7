import t from 'tap';
import { parseChatTemplate } from './parsed-template.js';

t.test('generation tags are found', async (t) => {
  for (const tag of ['{% generation %}', '{%- generation -%}'])
    t.equal(parseChatTemplate(`${tag}a{% endgeneration %}`).marks, true);
  t.equal(parseChatTemplate('{{ messages[0].content }}').marks, false);
});

t.test('invalid templates are refused', async (t) => {
  for (const source of ['{% for %}', '{{ a', '{% if a %}', '{% generation %}{% for m in messages %}'])
    t.throws(
      () => parseChatTemplate(source),
      { code: 'chat_template_invalid', message: /it cannot be read: ./ },
      source,
    );
});
