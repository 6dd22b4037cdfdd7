import t from 'tap';
import { BEGIN_MARK, END_MARK, parseChatTemplate } from './chat-template.js';

t.test('generation tags become markers with the same white space control', async (t) => {
  const source =
    '{% for m in messages %}[ {%- generation -%} {{ m.content }} {%- endgeneration %} ]{% endfor %}';
  const { template, marks } = parseChatTemplate(source);
  t.equal(marks, true);
  t.equal(template.render({ messages: [{ content: 'a' }] }), `[${BEGIN_MARK}a${END_MARK} ]`);
});

t.test('a template without tags has no markers', async (t) => {
  const { template, marks } = parseChatTemplate('{{ messages[0].content }}');
  t.equal(marks, false);
  t.equal(template.render({ messages: [{ content: 'a' }] }), 'a');
});

t.test('invalid templates are refused', async (t) => {
  for (const source of ['{% for %}', '{{ a', '{% if a %}', '{% generation %}{% for m in messages %}'])
    t.throws(
      () => parseChatTemplate(source),
      { code: 'chat_template_invalid', message: /it cannot be read: ./ },
      source,
    );
});
