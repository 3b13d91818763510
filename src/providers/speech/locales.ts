// The catalogs' languages as locales, for vendors that take no language without a country.

const LOCALES: Record<string, string> = {
  ar: "ar-SA", bg: "bg-BG", ca: "ca-ES", cs: "cs-CZ", da: "da-DK", de: "de-DE", el: "el-GR",
  en: "en-US", es: "es-ES", et: "et-EE", fi: "fi-FI", fr: "fr-FR", he: "he-IL", hi: "hi-IN",
  hr: "hr-HR", hu: "hu-HU", id: "id-ID", it: "it-IT", ja: "ja-JP", ko: "ko-KR", lt: "lt-LT",
  lv: "lv-LV", ms: "ms-MY", nl: "nl-NL", no: "nb-NO", pl: "pl-PL", pt: "pt-PT", ro: "ro-RO",
  ru: "ru-RU", sk: "sk-SK", sl: "sl-SI", sr: "sr-RS", sv: "sv-SE", ta: "ta-IN", th: "th-TH",
  tl: "fil-PH", tr: "tr-TR", uk: "uk-UA", vi: "vi-VN", zh: "zh-CN",
};

/** BCP 47 with a country for an `iso_2` code; a code that is not known is left as it is. */
export const localeOf = (language: string): string => LOCALES[language] ?? language;
