/** Names of the C locale, as in Python. */
const DAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
const MONTHS = [
  'January',
  'February',
  'March',
  'April',
  'May',
  'June',
  'July',
  'August',
  'September',
  'October',
  'November',
  'December',
];
const DAY_MS = 24 * 3600 * 1000;

/**
 * Formats a date as Python's `strftime` does at midnight in the C locale, independent of the machine's clock, time zone
 * and language.
 * @param day `YYYY-MM-DD`
 * @throws RangeError for an unknown directive
 */
export function strftime(day: string, format: string): string {
  const date = new Date(`${day}T00:00:00Z`);
  const [year = '', month = '', ofMonth = ''] = day.split('-');
  const weekday = date.getUTCDay();
  const dayOfYear = (date.getTime() - Date.UTC(date.getUTCFullYear(), 0)) / DAY_MS + 1;
  const [dayName = '', monthName = ''] = [DAYS[weekday], MONTHS[date.getUTCMonth()]];
  const texts: Readonly<Record<string, string>> = {
    a: dayName.slice(0, 3),
    A: dayName,
    b: monthName.slice(0, 3),
    B: monthName,
    d: ofMonth,
    D: `${month}/${ofMonth}/${year.slice(2)}`,
    e: ofMonth.replace(/^0/, ' '),
    F: day,
    H: '00',
    I: '12',
    j: String(dayOfYear).padStart(3, '0'),
    m: month,
    M: '00',
    p: 'AM',
    R: '00:00',
    S: '00',
    T: '00:00:00',
    u: String(weekday === 0 ? 7 : weekday),
    w: String(weekday),
    y: year.slice(2),
    Y: year,
    '%': '%',
  };
  return format.replace(/%(-?)(.?)/gs, (directive, plain: string, name: string) => {
    const text = Object.hasOwn(texts, name) ? texts[name] : undefined;
    if (text === undefined)
      throw new RangeError(
        `strftime_now does not know ${directive}; it knows %${Object.keys(texts).join(' %')}`,
      );
    return plain === '' ? text : text.replace(/^[0 ](?=.)/, '').replace(/^0(?=.)/, '');
  });
}
