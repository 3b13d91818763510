/* What the demo recogniser calls in PocketSphinx, and the files it reads: there is no file system,
 * its caller hands each file over once. build.sh compiles it. */
#include <stdio.h>
#include <string.h>
#include <sphinxbase/err.h>
#include <sphinxbase/ngram_model.h>
#include "pocketsphinx.h"

#define FILES_MAX 16
#define SEARCH "words"

static struct { const char *name; void *data; size_t size; } files[FILES_MAX];
static int files_count;
/* One for all decoders, which only read it. */
static ngram_model_t *language_model;

/* Stands for fopen in everything compiled here. */
FILE *open_given_file(const char *name, const char *mode)
{
    (void) mode;
    for (int at = 0; at < files_count; at++)
        if (strcmp(files[at].name, name) == 0)
            return fmemopen(files[at].data, files[at].size, "rb");
    return NULL;
}

/* Keeps both; 0 when there are too many. */
int give_file(const char *name, void *data, size_t size)
{
    if (files_count == FILES_MAX) return 0;
    files[files_count].name = name;
    files[files_count].data = data;
    files[files_count].size = size;
    files_count++;
    return 1;
}

/* NULL when it cannot be made. */
ps_decoder_t *make_decoder(void)
{
    err_set_logfp(NULL);
    cmd_ln_t *config = cmd_ln_init(NULL, ps_args(), 1,
        "-hmm", "model", "-dict", "model/dictionary", "-mmap", "no",
        /* A pass that would cost a quarter of a second at the end of each turn and gain little. */
        "-fwdflat", "no",
        NULL);
    if (config == NULL) return NULL;
    ps_decoder_t *decoder = ps_init(config);
    if (decoder && !language_model)
        language_model = ngram_model_read(
            config, "model/language.bin", NGRAM_BIN, ps_get_logmath(decoder));
    cmd_ln_free_r(config);
    if (!decoder) return NULL;
    if (language_model && ps_set_lm(decoder, SEARCH, language_model) == 0
        && ps_set_search(decoder, SEARCH) == 0)
        return decoder;
    ps_free(decoder);
    return NULL;
}
